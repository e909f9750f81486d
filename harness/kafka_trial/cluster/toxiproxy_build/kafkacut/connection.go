package kafkacut

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// connection is one connection of a client to a broker: both its halves are followed.
type connection struct {
	name    string
	lane    *lane
	unread  atomic.Bool // its bytes are no frames of Kafka's: they pass, and nothing is counted
	closing atomic.Bool
	sync.Mutex
	awaited map[int32]*cut // by the correlation id whose answer is cut
	awaits  atomic.Int32   // how many those are, for those who hold no lock
}

func newConnection(name string, l *lane) *connection {
	l.opened()
	return &connection{name: name, lane: l, awaited: make(map[int32]*cut)}
}

// unreadConnection is one of which a half was there before the toxic: in the middle of a frame, and without its other
// half.
func unreadConnection(l *lane) *connection {
	l.passesUnread()
	c := &connection{lane: l, awaited: make(map[int32]*cut)}
	c.unread.Store(true)
	c.closing.Store(true) // it was not counted as opened
	return c
}

func (c *connection) stopReading() {
	if !c.unread.Swap(true) {
		c.lane.passesUnread()
	}
}

func (c *connection) ended() {
	if !c.closing.Swap(true) {
		c.lane.closed()
	}
}

func (c *connection) await(correlation int32, one *cut) {
	c.Lock()
	defer c.Unlock()
	c.awaited[correlation] = one
	c.awaits.Store(int32(len(c.awaited)))
}

func (c *connection) answerOf(correlation int32) *cut {
	if c.awaits.Load() == 0 {
		return nil
	}
	c.Lock()
	defer c.Unlock()
	one := c.awaited[correlation]
	delete(c.awaited, correlation)
	c.awaits.Store(int32(len(c.awaited)))
	return one
}

// passing is what is under way in one half: bytes to write, or a cut that stands before what follows it.
type passing struct {
	chunk *stream.StreamChunk
	cut   *cut
}

// half is one direction of a connection; it lives in the stub of a toxic, over its interruptions.
type half struct {
	connection *connection
	requests   bool
	frames     frames
	queue      []passing
	ending     *cut // the cut whose answer is passing, where it acts behind that
	atEnd      bool // the input has ended
	closed     bool
}

func newHalf(c *connection, requests bool) *half {
	size := answerHeaderSize
	if requests {
		size = requestHeaderSize
	}
	return &half{connection: c, requests: requests, frames: frames{headerSize: size}}
}

// run passes bytes on until it is interrupted or the connection ends. Whatever it waits for, it can be interrupted.
func (h *half) run(stub *toxics.ToxicStub) {
	for {
		switch {
		case h.closed:
			drain(stub)
			return
		case len(h.queue) > 0 && h.queue[0].cut != nil:
			if !h.waitAt(stub, h.queue[0].cut) {
				return
			}
		case len(h.queue) > 0:
			select {
			case <-stub.Interrupt:
				return
			case stub.Output <- h.queue[0].chunk:
				h.queue = h.queue[1:]
			}
		case h.atEnd:
			h.connection.ended()
			stub.Close()
			return
		default:
			select {
			case <-stub.Interrupt:
				return
			case chunk := <-stub.Input:
				h.take(chunk)
			}
		}
	}
}

// waitAt lets a cut act; false when it was interrupted in it.
func (h *half) waitAt(stub *toxics.ToxicStub, one *cut) bool {
	if !h.connection.lane.hit(one) {
		h.queue = h.queue[1:]
		return true
	}
	ended := Pass
	switch one.arming.Action {
	case Close:
		ended = Drop
	case Delay:
		remaining := one.event.HitNs + one.arming.DelayMs*int64(time.Millisecond) - monotonicNs()
		timer := time.NewTimer(time.Duration(remaining))
		defer timer.Stop()
		select {
		case <-stub.Interrupt:
			return false
		case <-one.over:
			ended = one.by
		case <-timer.C:
		}
	case Hold:
		select {
		case <-stub.Interrupt:
			return false
		case <-one.over:
			ended = one.by
		}
	}
	h.queue = h.queue[1:]
	if ended == Drop {
		h.queue, h.closed = nil, true
		h.connection.ended()
		stub.Close()
	}
	h.connection.lane.gone(one, ended)
	return true
}

// take queues what came, with the cuts in it.
func (h *half) take(chunk *stream.StreamChunk) {
	if chunk == nil {
		h.atEnd = true
		h.pass(h.frames.carry, time.Now())
		h.frames.carry = nil
		return
	}
	if h.connection.unread.Load() {
		h.pass(append(h.frames.carry, chunk.Data...), chunk.Timestamp)
		h.frames.carry = nil
		return
	}
	queued, carry := len(h.queue), h.frames.carry
	defer func() {
		if recover() != nil { // it would end the server: the bytes pass, and no more are read
			h.queue, h.frames.carry, h.ending = h.queue[:queued], nil, nil
			h.connection.stopReading()
			h.pass(append(carry, chunk.Data...), chunk.Timestamp)
		}
	}()
	steps, rest, ok := h.frames.split(chunk.Data, h.asked())
	for _, one := range steps {
		h.follow(one, chunk.Timestamp)
	}
	if !ok {
		h.connection.stopReading()
		h.pass(rest, chunk.Timestamp)
	}
}

// asked tells whether anybody wants to know of single frames now.
func (h *half) asked() bool {
	if h.requests {
		return h.connection.lane.armed.Load()
	}
	return h.ending != nil || h.connection.awaits.Load() > 0
}

func (h *half) follow(one step, came time.Time) {
	if one.header != nil {
		if found := h.begins(one.header); found != nil {
			h.queue = append(h.queue, passing{cut: found})
		}
	}
	h.pass(one.data, came)
	if one.ends && h.ending != nil {
		// The writer behind takes the second empty chunk once the bytes before the first are in the socket.
		h.queue = append(h.queue, passing{chunk: empty(came)}, passing{chunk: empty(came)}, passing{cut: h.ending})
		h.ending = nil
	}
}

// begins returns the cut that stands before the frame that begins so.
func (h *half) begins(header []byte) *cut {
	if !h.requests {
		correlation, size := readAnswer(header)
		one := h.connection.answerOf(correlation)
		if one == nil || !h.connection.lane.answered(one, size) {
			return nil
		}
		if one.arming.Where == After {
			h.ending = one
			return nil
		}
		return one
	}
	request := readRequest(header)
	one := h.connection.lane.request(h.connection.name, request)
	if one != nil && one.arming.Where != Before {
		h.connection.await(request.correlation, one)
		return nil
	}
	return one
}

func (h *half) pass(data []byte, came time.Time) {
	if len(data) == 0 {
		return
	}
	if last := len(h.queue) - 1; last >= 0 && h.queue[last].chunk != nil && follows(h.queue[last].chunk.Data, data) {
		before := h.queue[last].chunk
		before.Data = before.Data[:len(before.Data)+len(data)]
		return
	}
	h.queue = append(h.queue, passing{chunk: &stream.StreamChunk{Data: data, Timestamp: came}})
}

// follows tells whether data stands right behind what is to be written before it: frames that came together go together.
func follows(before, data []byte) bool {
	end := len(before)
	return end > 0 && cap(before) >= end+len(data) && &before[:end+1][end] == &data[0]
}

// empty returns a chunk of no bytes; nil bytes would end the stream.
func empty(came time.Time) *stream.StreamChunk {
	return &stream.StreamChunk{Data: []byte{}, Timestamp: came}
}

const flushWithin = 5 * time.Second // Toxiproxy's own patience where a toxic is taken away

// flush writes what is under way, for the toxic is taken away; a connection that does not take it is closed, for bytes
// must not be missing in its middle.
func (h *half) flush(stub *toxics.ToxicStub) {
	h.pass(h.frames.carry, time.Now())
	h.frames.carry = nil
	for _, one := range h.queue {
		if one.cut != nil {
			h.connection.lane.gone(one.cut, Pass)
		} else if err := stub.WriteOutput(one.chunk, flushWithin); err != nil {
			h.closed = true
			stub.Close()
			break
		}
	}
	h.queue = nil
	h.connection.ended()
}

// drain takes what still comes, for the reader before it to end.
func drain(stub *toxics.ToxicStub) {
	for range stub.Input {
	}
}
