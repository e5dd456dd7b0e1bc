package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchunit"
)

// A plot is drawn for benchmarks that go through numbers of calls in flight: the cost
// of an operation against that number, both logarithmic, with a line for each peer.
const (
	plotKey  = "inflight"
	plotUnit = "sec/op"

	width, height            = 640, 400
	left, right, top, bottom = 70, 130, 30, 50
)

// curve is one line of a plot.
type curve struct {
	name   string
	points []point
}

type point struct{ x, y, low, high float64 }

// plot draws a benchmark as SVG; "" if there is nothing to draw.
func plot(b *benchmark) string {
	curves := curvesOf(b)
	var xs, ys []float64
	for _, c := range curves {
		for _, p := range c.points {
			xs, ys = append(xs, p.x), append(ys, p.low, p.high)
		}
	}
	slices.Sort(xs)
	if xs = slices.Compact(xs); len(xs) < 3 {
		return ""
	}
	x := axis{math.Log10(xs[0]), math.Log10(xs[len(xs)-1]), left, width - right}
	y := axis{math.Floor(math.Log10(slices.Min(ys))), math.Ceil(math.Log10(slices.Max(ys))), height - bottom, top}
	d := &drawing{}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`, width, height)
	d.printf(`<rect width="100%%" height="100%%" fill="white"/>`)
	d.text((left+width-right)/2, 18, "middle", b.name)
	d.text((left+width-right)/2, height-10, "middle", "calls in flight")
	for e := y.low; e <= y.high; e++ {
		at := y.at(math.Pow(10, e))
		d.line(left, at, width-right, at, "#ddd")
		d.text(left-8, at+4, "end", benchunit.Scale(math.Pow(10, e), benchunit.ClassOf(plotUnit))+"s")
	}
	for _, v := range xs {
		d.line(x.at(v), top, x.at(v), height-bottom, "#ddd")
		d.text(x.at(v), height-bottom+18, "middle", strconv.FormatFloat(v, 'f', -1, 64))
	}
	for i, c := range curves {
		d.curve(c, x, y, colourTable[i%len(colourTable)])
	}
	d.printf("</svg>")
	return d.String()
}

// colourTable tells peers apart, also for those who see few colours.
var colourTable = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

func curvesOf(b *benchmark) []curve {
	var curves []*curve
	for _, c := range b.cases {
		text, ok := c.value(plotKey)
		x, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil || len(c.values[plotUnit]) == 0 {
			continue
		}
		name := c.peer
		for _, k := range c.keys {
			if k.name != plotKey {
				name = strings.TrimSpace(k.value + " " + name)
			}
		}
		of := find(&curves, func(c *curve) bool { return c.name == name }, func() *curve { return &curve{name: name} })
		s := c.summary(plotUnit)
		p := point{x, s.Center, s.Lo, s.Hi}
		if math.IsInf(p.low, 0) || math.IsInf(p.high, 0) || p.low <= 0 { // too few runs for a spread
			p.low, p.high = p.y, p.y
		}
		of.points = append(of.points, p)
	}
	all := make([]curve, len(curves))
	for i, c := range curves {
		all[i] = *c
	}
	return all
}

// axis maps powers of ten to pixels.
type axis struct{ low, high, from, to float64 }

func (a axis) at(v float64) float64 {
	if a.high == a.low {
		return a.from
	}
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

type drawing struct{ strings.Builder }

func (d *drawing) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d, format+"\n", args...) // a Builder takes everything
}

func (d *drawing) line(x1, y1, x2, y2 float64, colour string) {
	d.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, x1, y1, x2, y2, colour)
}

func (d *drawing) text(x, y float64, anchor, text string) {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text)) // a Builder takes everything
	d.printf(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, escaped.String())
}

// curve draws a line with its points, their spread, and its name at the end.
func (d *drawing) curve(c curve, x, y axis, colour string) {
	points := make([]string, 0, len(c.points))
	for _, p := range c.points {
		points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(p.x), y.at(p.y)))
		d.line(x.at(p.x), y.at(p.low), x.at(p.x), y.at(p.high), colour)
		d.printf(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x.at(p.x), y.at(p.y), colour)
	}
	d.printf(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(points, " "), colour)
	last := c.points[len(c.points)-1]
	d.text(x.at(last.x)+8, y.at(last.y)+4, "start", c.name)
}
