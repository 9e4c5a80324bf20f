package page

// A step is where a byte leads in raw text. A state that is zero is as other.
type step struct {
	dash, less, greater, slash, bang, letter state

	other state
	again bool // letter and other look at the byte once more
}

// steps is HTML's automaton for raw text and scripts, as x/net/html's Tokenizer
// has it. A comment in a script hides an end tag if a start tag of script
// precedes that. States without a row have their own code.
var steps = [doubleEnd + 1]step{
	inRawLess:      {slash: inRawEnd, other: inRaw, again: true},
	scriptLess:     {slash: scriptEnd, bang: scriptBang, other: inScript, again: true},
	scriptBang:     {dash: scriptBangDash, other: inScript, again: true},
	scriptBangDash: {dash: escapedDashes, other: inScript, again: true},
	escaped:        {dash: escapedDash, less: escapedLess, other: escaped},
	escapedDash:    {dash: escapedDashes, less: escapedLess, other: escaped},
	escapedDashes:  {dash: escapedDashes, less: escapedLess, greater: inScript, other: escaped},
	escapedLess:    {slash: escapedEnd, letter: doubleStart, other: inScript, again: true},
	double:         {dash: doubleDash, less: doubleLess, other: double},
	doubleDash:     {dash: doubleDashes, less: doubleLess, other: double},
	doubleDashes:   {dash: doubleDashes, less: doubleLess, greater: inScript, other: double},
	doubleLess:     {slash: doubleEnd, other: double, again: true},
}

// on returns where c leads, and whether c is looked at once more there.
func (p *step) on(c byte) (to state, again bool) {
	switch {
	case c == '-':
		to = p.dash
	case c == '<':
		to = p.less
	case c == '>':
		to = p.greater
	case c == '/':
		to = p.slash
	case c == '!':
		to = p.bang
	case isLetter(c) && p.letter != 0:
		return p.letter, p.again
	}
	if to == 0 {
		return p.other, p.again
	}
	return to, false
}

// rawText passes over the content of an element that holds no markup, and over
// the name of the end tag that closes it.
func (s *scanner) rawText(piece []byte, i int) int {
	switch s.state {
	case inPlain:
		s.done = true
		return len(piece)
	case inRaw:
		return s.find(piece, i, '<', inRawLess)
	case inScript:
		return s.find(piece, i, '<', scriptLess)
	case inRawEnd, scriptEnd, escapedEnd, doubleStart, doubleEnd:
		return s.endOfRaw(piece[i], i)
	}
	for i < len(piece) && steps[s.state].other != 0 {
		s.passedOver(piece[i]|0x20 == 'm' && steps[s.state].slash != 0) // "<m": raw text is markup there
		to, again := steps[s.state].on(piece[i])
		if !again {
			i++
		}
		s.state, s.matched = to, 0
	}
	return i
}

// endOfRaw compares the next byte with the name that ends the raw text, or that
// hides its end, and goes on where the comparison leads.
func (s *scanner) endOfRaw(c byte, i int) int {
	switch {
	case s.matched < len(s.raw) && lower(c) == s.raw[s.matched]:
		s.matched++
	case s.matched == len(s.raw) && (isBlank(c) || c == '/' || c == '>'):
		switch s.state {
		case doubleStart:
			s.state = double
		case doubleEnd:
			s.state = escaped
		default: // an end tag; its attributes begin with c
			s.state, s.end, s.empty, s.length = beforeKey, true, false, 0
			return i
		}
	default:
		s.state = missed[s.state]
		return i
	}
	return i + 1
}

// missed is where the text goes on if the name is not there.
var missed = [...]state{
	inRawEnd: inRaw, scriptEnd: inScript, escapedEnd: escaped, doubleStart: escaped, doubleEnd: double,
}
