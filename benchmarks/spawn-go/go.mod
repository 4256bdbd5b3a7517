module spawn-go

go 1.22
