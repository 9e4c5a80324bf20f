package cache

import (
	"math"
	"reflect"
	"testing"
	"time"
)

// meaning is what the fields of c come to, by name.
func meaning(c *Cache) map[string]int64 {
	c.Store = struct{ Store }{}
	c.once.Do(c.init)
	return map[string]int64{
		"MaxOrigins":   reflect.ValueOf(c.memory.recent).Elem().FieldByName("size").Int(),
		"MaxBytes":     c.memory.limit,
		"MinTTL":       int64(c.terms.minTTL),
		"MaxTTL":       int64(c.terms.maxTTL),
		"MinRetry":     int64(c.terms.minRetry),
		"StoreTimeout": int64(c.backing.patience),
	}
}

// One law for every field: if zero, its default; if negative, there is none.
func TestFieldsThatAreZeroOrNegative(t *testing.T) {
	zero := map[string]int64{
		"MaxOrigins": 50_000, "MaxBytes": 64 << 20,
		"MinTTL": int64(time.Minute), "MaxTTL": int64(24 * time.Hour),
		"MinRetry":     int64(30 * time.Second),
		"StoreTimeout": int64(2 * time.Second),
	}
	negative := map[string]int64{
		"MaxOrigins": math.MaxInt, "MaxBytes": math.MaxInt64,
		"MinTTL": 0, "MaxTTL": int64(century), "MinRetry": 0,
		"StoreTimeout": int64(flightTimeout), // which ends the caller's wait in any case
	}
	if got := meaning(new(Cache)); !reflect.DeepEqual(got, zero) {
		t.Errorf("all zero: %v, want %v", got, zero)
	}
	numbers := 0
	for f := range reflect.TypeFor[Cache]().Fields() {
		if kind := f.Type.Kind(); !f.IsExported() || kind != reflect.Int && kind != reflect.Int64 {
			continue
		}
		numbers++
		for _, n := range []int64{-1, math.MinInt64 >> (64 - f.Type.Bits())} { // the least that the field holds
			c := new(Cache)
			reflect.ValueOf(c).Elem().FieldByIndex(f.Index).SetInt(n)
			if got, ok := meaning(c)[f.Name]; !ok || got != negative[f.Name] {
				t.Errorf("%s %d: %d, want %d", f.Name, n, got, negative[f.Name])
			}
		}
	}
	if numbers != len(negative) {
		t.Errorf("%d fields with a number, want %d", numbers, len(negative))
	}
}
