// Package sockets answers what the kernel knows of the TCP sockets of the network namespace that this process is in.
//
// Proxies and brokers in containers are in a namespace of their own, which only root may enter. sock_diag asks for no
// privilege of whoever is inside. What it says is handed on as it came, and decoded where that of other machines is.
package sockets

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"

	"golang.org/x/sys/unix"
)

// linux/sock_diag.h, linux/inet_diag.h, linux/netlink.h
const (
	sockDiagByFamily = 20
	infoAttribute    = 2
	requestBytes     = 56
	headerBytes      = 16
	receiveBytes     = 1 << 18
	answerWithinS    = 5
)

// Serve answers GET /sockets?states=MASK with sock_diag's messages for IPv4, then for IPv6, of the sockets whose state
// has its bit in MASK. Each of the two ends with the kernel's own mark of the end, or with its error.
func Serve(response http.ResponseWriter, request *http.Request) {
	states, err := strconv.ParseUint(request.URL.Query().Get("states"), 10, 32)
	if err != nil {
		http.Error(response, "states: a mask of TCP states, as a decimal number", http.StatusBadRequest)
		return
	}
	var table []byte
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		messages, err := dump(family, uint32(states))
		if err != nil {
			http.Error(response, fmt.Sprintf("sock_diag: %v", err), http.StatusInternalServerError)
			return
		}
		table = append(table, messages...)
	}
	response.Header().Set("Content-Type", "application/octet-stream")
	_, _ = response.Write(table)
}

// dump returns the kernel's messages about the sockets of one family, the last of which says that they are all.
func dump(family byte, states uint32) ([]byte, error) {
	netlink, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(netlink)
	limit := unix.Timeval{Sec: answerWithinS}
	if err := unix.SetsockoptTimeval(netlink, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return nil, err
	}
	if err := unix.Sendto(netlink, question(family, states), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	var messages []byte
	part := make([]byte, receiveBytes)
	for {
		size, _, err := unix.Recvfrom(netlink, part, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		messages = append(messages, part[:size]...)
		if ended(part[:size]) {
			return messages, nil
		}
	}
}

func question(family byte, states uint32) []byte {
	message := make([]byte, headerBytes+requestBytes)
	order := binary.NativeEndian
	order.PutUint32(message[0:], uint32(len(message)))
	order.PutUint16(message[4:], sockDiagByFamily)
	order.PutUint16(message[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	order.PutUint32(message[8:], 1)
	message[headerBytes] = family
	message[headerBytes+1] = unix.IPPROTO_TCP
	message[headerBytes+2] = 1 << (infoAttribute - 1)
	order.PutUint32(message[headerBytes+4:], states)
	return message
}

// ended tells whether a message among these is the last of its dump.
func ended(messages []byte) bool {
	for len(messages) >= headerBytes {
		kind := binary.NativeEndian.Uint16(messages[4:])
		if kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR {
			return true
		}
		length := int(binary.NativeEndian.Uint32(messages))
		size := (length + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1)
		if size < headerBytes || size > len(messages) {
			return false
		}
		messages = messages[size:]
	}
	return false
}
