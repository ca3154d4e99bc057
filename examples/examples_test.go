package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stories are what the small examples print. A story that moves money twice where it should not prints otherwise.
var stories = map[string]string{
	"approve": `$ approve ask
  MONEY MOVES: 2000 cents for order 1001
  paused: 2 calls wait for a person
$ approve pending
  ticket-42, turn 1, position 1: issue_refund {"cents":9000,"order_id":"1002"}
  ticket-42, turn 1, position 2: issue_refund {"cents":12000,"order_id":"1003"}
$ approve approve 1
$ approve deny 2
$ approve ask
  MONEY MOVES: 9000 cents for order 1002
  model: 1001: refunded. 1002: refunded. 1003: {"toolonce":1,"status":"refused","tool":"issue_refund","reason":"a person has denied it: ann has looked at the photos; do not try it again"}
$ approve ask
  model: 1001: refunded. 1002: refunded. 1003: {"toolonce":1,"status":"refused","tool":"issue_refund","reason":"a person has denied it: ann has looked at the photos; do not try it again"}
`,
	"http-service": `  MONEY MOVES: 500 cents for order 1001
key-1 "Refund order 1001": 200 Your order is refunded.
key-1 "Refund order 1001": 200 Your order is refunded.
key-1 "Refund order 1003": 422 this key was used for another message
      "Refund order 1003": 400 send an Idempotency-Key, and {"message": …}
SIGTERM
  draining
  MONEY MOVES: 500 cents for order 1002
key-2 "Refund order 1002": 200 Your order is refunded.
started again
key-2 "Refund order 1002": 200 Your order is refunded.
  draining
`,
	"conversation": `user:  Refund 5.00 of order 1001, a cup arrived broken.
  MONEY MOVES: 500 cents for order 1001
  first is executed
model: Your 5.00 are on their way.
user:  Did it go through?
  checking is already_done
model: Yes. It was refunded once.
user:  Now a second cup broke. Please do it again.
  MONEY MOVES: 500 cents for order 1001
  again is executed
  twice is already_done
model: Another 5.00 are on their way.
`,
	"undo": `user:  Book the blue room for May 4.
  book_room is executed: {"booking_id":"B1"}
model: It is booked, as B1.
user:  Is it booked?
  book_room is already_done: {"booking_id":"B1"}
model: It is, as B1.
user:  Please cancel it.
  cancel_booking is executed: cancelled
model: B1 is cancelled.
user:  Is it cancelled?
  cancel_booking is already_done: "cancelled"
model: It is.
user:  Book it again after all.
  book_room is executed: {"booking_id":"B2"}
model: It is booked, as B2.
the hotel has booked 2 times and cancelled 1
`,
	"streaming": `chat
  1 text      "I wil"
  1 text      "l see"
  1 text      " to i"
  1 text      "t."
  1 announced call_1 issue_refund
  1 arguments call_1 {"order_id":"1001","cents":500}
  MONEY MOVES: 500 cents for order 1001
  1 verdict   call_1 executed
  1 result    call_1 "refunded"
  1 ended
  2 text      "Your 5.00"
  2 text      " are on t"
  2 text      "heir way."
  2 ended
answer: Your 5.00 are on their way.
responses
  1 reasoning "The user"
  1 reasoning " wants m"
  1 reasoning "oney bac"
  1 reasoning "k."
  1 text      "I wil"
  1 text      "l see"
  1 text      " to i"
  1 text      "t."
  1 announced call_1 issue_refund
  1 arguments call_1 {"order_id":"1001","cents":500}
  MONEY MOVES: 500 cents for order 1001
  1 verdict   call_1 executed
  1 result    call_1 "refunded"
  1 ended
  2 text      "Your 5.00"
  2 text      " are on t"
  2 text      "heir way."
  2 ended
answer: Your 5.00 are on their way.
`,
	"structured": `  user       My cup of order 1001 is broken!!! I want 5.00 back.
  MONEY MOVES: 500 cents for order 1001
  tool       refunded
  assistant  {"order_id":"1001","refunded":true,"mood":"furious"}
  system     The last answer does not fit the schema of Outcome: /mood: must be one of "calm", "angry".
  user       Answer again, with JSON that fits the schema and nothing else.
  assistant  {"order_id":"1001","refunded":true,"mood":"angry"}
{OrderID:1001 Refunded:true Mood:angry} after 3 requests
{OrderID:1001 Refunded:true Mood:angry} after 3 requests
`,
}

// TestEveryExampleTellsItsStoryAndLeavesNothing runs each without a key, and looks for what it has left behind.
func TestEveryExampleTellsItsStoryAndLeavesNothing(t *testing.T) {
	bin := t.TempDir()
	args := []string{"build", "-o", bin}
	for name := range stories {
		args = append(args, "./"+name)
	}
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("building the examples: %v\n%s", err, out)
	}
	for name, want := range stories {
		t.Run(name, func(t *testing.T) {
			dir, temp := t.TempDir(), t.TempDir()
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, name))
			var out, errs bytes.Buffer
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, []string{"TMPDIR=" + temp}, &out, &errs
			if err := cmd.Run(); err != nil || errs.Len() > 0 {
				t.Errorf("%v\n%s", err, errs.String())
			}
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("it prints otherwise (-want +got):\n%s", diff)
			}
			for _, d := range []string{dir, temp} {
				if left, err := os.ReadDir(d); err != nil || len(left) > 0 {
					t.Errorf("it has left %v, %v", left, err)
				}
			}
		})
	}
}

func TestREADMENamesEveryExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range stories {
		if !bytes.Contains(readme, []byte("| `go run ./examples/"+name+"` | ")) {
			t.Errorf("README does not say what %s shows", name)
		}
	}
}
