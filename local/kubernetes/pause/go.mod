module rollcall.dev/pause-binary

go 1.26.0
