package page

// Steps scans a page in pieces of a size. It returns how many steps that takes, and how many
// bytes of the page the Tokenizer gets to read.
func Steps(text string, size int) (steps, read int) {
	s := scanner{width: 1, moves: moves(), state: inText}
	for text != "" && !s.done {
		piece := []byte(text[:min(size, len(text))])
		text = text[len(piece):]
		for i := 0; i < len(piece) && !s.done; steps++ {
			collecting := s.inMeta
			i = s.step(piece, i)
			if collecting && !s.inMeta {
				read += len(s.buf.text) - len("<meta")
			}
		}
		s.pos += int64(len(piece))
	}
	return steps, read
}
