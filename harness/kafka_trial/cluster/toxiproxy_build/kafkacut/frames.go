package kafkacut

import "encoding/binary"

// Kafka's frames, by its protocol guide: a length of four bytes, then in a request api key, api version and
// correlation id, in an answer the correlation id of its request.
const (
	requestHeaderSize = 4 + 2 + 2 + 4
	answerHeaderSize  = 4 + 4
	frameBytesMax     = 256 << 20 // brokers refuse requests of more than 100 MB; the first bytes of TLS say 369 MB
	apiKeyMax         = 1000
)

type requestHeader struct {
	api, version int16
	correlation  int32
}

// frames follows the frames of one direction over chunks of any size.
type frames struct {
	headerSize int
	carry      []byte // of a header that is not whole; they are not passed on yet
	left       int    // bytes of the frame that are still to come
	steps      []step // of the last split; a client sends hundreds of frames at once
}

// step is a run of bytes that can be passed on as they are; header is set where they begin a frame, ends where their
// last byte is a frame's last.
type step struct {
	data   []byte
	header []byte
	ends   bool
}

// split cuts what came into steps; ok is false where the bytes are no frames: the steps before that are good, rest is
// what remains. The steps are good until the next split. Where no frame is asked for, all that is good is one step.
func (f *frames) split(data []byte, each bool) (steps []step, rest []byte, ok bool) {
	steps = f.steps[:0]
	defer func() { f.steps = steps }()
	if len(f.carry) > 0 {
		data = append(f.carry, data...)
		f.carry = nil
	}
	all, ok := data, true
	for len(data) > 0 {
		one := step{}
		if f.left == 0 {
			if len(data) < f.headerSize {
				f.carry = append([]byte(nil), data...)
				break
			}
			if ok = f.begins(data); !ok {
				rest = data
				break
			}
			one.header = data[:f.headerSize]
		}
		size := min(f.left, len(data))
		one.data, data = data[:size], data[size:]
		f.left -= size
		one.ends = f.left == 0
		if each {
			steps = append(steps, one)
		}
	}
	if good := len(all) - len(data); !each && good > 0 {
		steps = append(steps, step{data: all[:good]})
	}
	return steps, rest, ok
}

// begins reads the length of a frame; false where none begins here.
func (f *frames) begins(data []byte) bool {
	length := int(int32(binary.BigEndian.Uint32(data)))
	if length < f.headerSize-4 || length > frameBytesMax {
		return false
	}
	f.left = 4 + length
	return f.headerSize != requestHeaderSize || sane(readRequest(data))
}

func readRequest(header []byte) requestHeader {
	return requestHeader{
		api:         int16(binary.BigEndian.Uint16(header[4:])),
		version:     int16(binary.BigEndian.Uint16(header[6:])),
		correlation: int32(binary.BigEndian.Uint32(header[8:])),
	}
}

// readAnswer returns whose answer it is, and how many bytes it has with its length.
func readAnswer(header []byte) (correlation int32, size int) {
	return int32(binary.BigEndian.Uint32(header[4:])), 4 + int(binary.BigEndian.Uint32(header))
}

func sane(h requestHeader) bool {
	return h.api >= 0 && h.api <= apiKeyMax && h.version >= 0 && h.version <= 100
}
