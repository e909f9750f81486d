//go:build tools

// Names the one program this module builds: Toxiproxy's server.
package tools

import _ "github.com/Shopify/toxiproxy/v2/cmd/server"
