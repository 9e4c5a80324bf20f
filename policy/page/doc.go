// Package page reads what a page says about its own use.
package page
