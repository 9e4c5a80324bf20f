package page

import "sync"

// A state is where in the markup the scanner is. The states behind a "<" are
// entered with that byte passed over.
type state uint8

const (
	_ state = iota
	inText
	afterLess
	afterLessSlash
	afterLessBang
	afterLessBangDash
	inBogus // a declaration or a broken tag, up to ">"

	commentStart
	commentStartDash
	inComment
	commentDash
	commentDashes
	commentBang

	inTagName
	beforeKey
	afterSlash // as beforeKey, and ">" ends an empty tag
	inKey
	afterKey
	beforeValue
	inBare
	inSingle
	inDouble
	afterTag
	afterEmptyTag

	inRaw
	inRawLess
	inRawEnd

	// The content of script, which may hide an end tag in a comment.
	inScript
	scriptLess
	scriptEnd
	scriptBang
	scriptBangDash
	escaped
	escapedDash
	escapedDashes
	escapedLess
	escapedEnd
	doubleStart
	double
	doubleDash
	doubleDashes
	doubleLess
	doubleEnd
)

// again says that the byte is looked at once more where it leads.
const again state = 1 << 7

// A step is where a byte leads. A state that is zero is as other.
type step struct {
	blank, dash, less, greater, slash, bang, question, equals, single, double, letter, other state

	only  byte // nothing but this byte leads on
	hides byte // looked at once more, it would be markup in svg and math
}

// steps is HTML's automaton for tags, comments, raw text and scripts, as x/net/html's Tokenizer
// has it. A comment in a script hides an end tag if a start tag of script precedes that. States
// without a row have their own code.
var steps = [doubleEnd + 1]step{
	inText:            {only: '<', other: afterLess},
	afterLess:         {slash: afterLessSlash, bang: afterLessBang, question: inBogus, letter: inTagName | again, other: inText | again},
	afterLessSlash:    {greater: inText, letter: inTagName | again, other: inBogus | again},
	afterLessBang:     {dash: afterLessBangDash, other: inBogus | again, hides: '['}, // CDATA, whose end is not the next ">"
	afterLessBangDash: {dash: commentStart, other: inBogus | again, hides: '['},
	inBogus:           {only: '>', other: inText},

	// A comment ends with "-->", "--!>", or ">" where nothing but dashes precedes it.
	commentStart:     {dash: commentStartDash, greater: inText, other: inComment},
	commentStartDash: {dash: commentDashes, greater: inText, other: inComment},
	inComment:        {only: '-', other: commentDash},
	commentDash:      {dash: commentDashes, other: inComment},
	commentDashes:    {dash: commentDashes, greater: inText, bang: commentBang, other: inComment},
	commentBang:      {dash: commentDash, greater: inText, other: inComment},

	// A first "=" is part of the name of an attribute.
	beforeKey:   {blank: beforeKey, slash: afterSlash, greater: afterTag, other: inKey},
	afterSlash:  {blank: beforeKey, slash: afterSlash, greater: afterEmptyTag, other: inKey},
	inKey:       {blank: afterKey, slash: afterSlash, equals: beforeValue, greater: afterTag, other: inKey},
	afterKey:    {blank: afterKey, slash: afterSlash, equals: beforeValue, greater: afterTag, other: inKey},
	beforeValue: {blank: beforeValue, single: inSingle, double: inDouble, greater: afterTag, other: inBare},
	inBare:      {blank: beforeKey, greater: afterTag, other: inBare},
	inSingle:    {only: '\'', other: beforeKey},
	inDouble:    {only: '"', other: beforeKey},

	inRaw:          {only: '<', other: inRawLess},
	inRawLess:      {slash: inRawEnd, other: inRaw | again, hides: 'm'},
	inScript:       {only: '<', other: scriptLess},
	scriptLess:     {slash: scriptEnd, bang: scriptBang, other: inScript | again, hides: 'm'},
	scriptBang:     {dash: scriptBangDash, other: inScript | again},
	scriptBangDash: {dash: escapedDashes, other: inScript | again},
	escaped:        {dash: escapedDash, less: escapedLess, other: escaped},
	escapedDash:    {dash: escapedDashes, less: escapedLess, other: escaped},
	escapedDashes:  {dash: escapedDashes, less: escapedLess, greater: inScript, other: escaped},
	escapedLess:    {slash: escapedEnd, letter: doubleStart | again, other: inScript | again, hides: 'm'},
	double:         {dash: doubleDash, less: doubleLess, other: double},
	doubleDash:     {dash: doubleDashes, less: doubleLess, other: double},
	doubleDashes:   {dash: doubleDashes, less: doubleLess, greater: inScript, other: double},
	doubleLess:     {slash: doubleEnd, other: double | again, hides: 'm'},
}

// moves is steps by byte.
var moves = sync.OnceValue(func() *[len(steps)][256]state {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	var all [len(steps)][256]state
	for at, row := range steps {
		for c := range all[at] {
			all[at][c] = row.other
		}
		for bytes, to := range map[string]state{
			" \t\n\f\r": row.blank, "-": row.dash, "<": row.less, ">": row.greater, "/": row.slash, "!": row.bang,
			"?": row.question, "=": row.equals, "'": row.single, `"`: row.double, letters: row.letter,
		} {
			for i := 0; i < len(bytes) && to != 0; i++ {
				all[at][bytes[i]] = to
			}
		}
	}
	return &all
})

// missed is where raw text goes on if the name is not there that could end it.
var missed = [...]state{
	inRawEnd: inRaw, scriptEnd: inScript, escapedEnd: escaped, doubleStart: escaped, doubleEnd: double,
}
