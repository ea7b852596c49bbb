package schedule

import "math"

// simplex is the part of the revised simplex method that knows no columns: a
// basis, by its inverse, for a programme that covers every row's demand for the
// least money. Who uses it finds the columns.
type simplex struct {
	inverse [][]float64 // of the basis
	x, y    []float64   // per row: how much of its basic column, and the shadow price
	column  []float64   // the entering column, in terms of the basis
	filled  []int32     // kept from pivot to pivot
}

// newSimplex returns a programme whose basic columns each cover one row, each
// unit of column r with unit[r], at the price[r].
func newSimplex(demand, unit, price []float64) *simplex {
	k := len(demand)
	s := &simplex{inverse: make([][]float64, k), x: make([]float64, k), y: make([]float64, k), column: make([]float64, k)}
	cells := make([]float64, k*k)
	for r := range k {
		s.inverse[r] = cells[r*k : r*k+k]
		s.inverse[r][r] = 1 / unit[r]
		s.x[r], s.y[r] = demand[r]/unit[r], price[r]/unit[r]
	}
	return s
}

// add adds an amount that the entering column gives to a row.
func (s *simplex) add(row int, amount float64) {
	for i, b := range s.inverse {
		s.column[i] += b[row] * amount
	}
}

// overpaid returns the row whose shadow price is most negative, so that leaving
// some of it over pays; -1 if there is none.
func (s *simplex) overpaid(tolerance float64) int {
	worst, at := -tolerance, -1
	for r, y := range s.y {
		if y < worst {
			worst, at = y, r
		}
	}
	return at
}

// swap brings the entering column, of which a unit costs so much less what its
// rows pay for it, into the basis, and returns the row whose column leaves; -1
// if none can.
func (s *simplex) swap(reduced float64) (leave int) {
	leave = -1
	least := math.Inf(1)
	for r, c := range s.column {
		if c > 1e-9 && s.x[r] < least*c {
			leave, least = r, s.x[r]/c
		}
	}
	if leave >= 0 {
		s.pivot(leave, reduced)
	}
	clear(s.column)
	return leave
}

func (s *simplex) pivot(leave int, reduced float64) {
	pivot, at := s.inverse[leave], 1/s.column[leave]
	s.filled = s.filled[:0]
	for j, v := range pivot {
		if v != 0 {
			pivot[j] = v * at
			s.y[j] += reduced * pivot[j]
			s.filled = append(s.filled, int32(j))
		}
	}
	s.x[leave] *= at
	for r, f := range s.column {
		if r == leave || f == 0 {
			continue
		}
		row := s.inverse[r]
		for _, j := range s.filled {
			row[j] -= f * pivot[j]
		}
		s.x[r] -= f * s.x[leave]
	}
}
