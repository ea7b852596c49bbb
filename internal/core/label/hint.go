package label

import "strings"

// Hint returns the known key that somebody who wrote key may have meant: one
// that contains it, or that differs by less than a fifth of its length. It
// returns "" if there is none. Of several, the nearest wins, then the first.
func Hint(key string, known []string) string {
	best, at := 0, ""
	for _, k := range known {
		if k == key {
			continue
		}
		d := Distance(key, k)
		near := 5*d < len(key)
		within := len(key) >= 3 && strings.Contains(k, key)
		if (near || within) && (at == "" || d < best) {
			best, at = d, k
		}
	}
	return at
}

// Distance is the number of letters to insert, delete or change to turn a
// into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := left
			if a[i] != b[j] {
				cost++
			}
			left = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
