package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
)

// scene is one message to the bot and what goes wrong with it.
type scene struct {
	name   string
	about  string // what goes wrong, in one line
	order  string
	cents  int64
	reason string // why, as the model words it the first time
	again  string // and the second time
}

// The scenes' names.
const (
	lateAnswer  = "late-answer"
	twice       = "twice-in-a-turn"
	askedAgain  = "asked-again"
	killed      = "killed"
	secondOrder = "second-order"
	notes       = "notes"
)

// plot is every scene, in order.
var plot = []struct{ name, about string }{
	{lateAnswer, "the provider moves the money, but its answer comes too late"},
	{twice, "the model calls twice in one turn, worded differently, under two ids"},
	{askedAgain, "two turns later the model asks for the same refund again"},
	{killed, "the worker is killed right after the money has moved, and started again"},
	{secondOrder, "nothing goes wrong: another order, the same amount"},
	{notes, "nothing goes wrong: the same note twice, both are meant"},
}

func sceneNames() []string {
	var names []string
	for _, p := range plot {
		names = append(names, p.name)
	}
	return names
}

// newScenes makes the scenes of a seed; equal seeds make equal scenes. only picks one by name, "" all.
func newScenes(seed uint64, only string) []scene {
	rnd := rand.New(rand.NewPCG(seed, 0))
	wordings := [][2]string{
		{"it arrived broken", "Arrived broken."}, {"it never arrived", "Customer says it never came."},
		{"wrong size", "The size does not fit."}, {"it came twice", "Delivered two times."},
	}
	var scenes []scene
	order, cents := 1000+rnd.IntN(8000), int64(0)
	for _, p := range plot {
		order += 1 + rnd.IntN(9)
		if p.name != secondOrder { // which has the amount of the one before
			cents = int64(500 + rnd.IntN(9500))
		}
		words := wordings[rnd.IntN(len(wordings))]
		scenes = append(scenes, scene{p.name, p.about, strconv.Itoa(order), cents, words[0], words[1]})
	}
	return slices.DeleteFunc(scenes, func(s scene) bool { return only != "" && s.name != only })
}

// message is what the user asks for.
func (s scene) message() string {
	if s.name == notes {
		return fmt.Sprintf("The customer of order %s has called two times. Please add a note for each call.", s.order)
	}
	return fmt.Sprintf("Please refund %s of order %s: %s.", provider.Money(s.cents), s.order, strings.TrimSuffix(s.reason, "."))
}

// paid is what the order had cost: more than any two refunds.
func (s scene) paid() int64 { return 3 * s.cents }

// wanted is how many effects the user wants.
func (s scene) wanted() int {
	if s.name == notes {
		return 2
	}
	return 1
}
