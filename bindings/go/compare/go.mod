module tatcell.example/compare

go 1.19

require (
	github.com/throttled/throttled/v2 v2.13.0
	golang.org/x/time v0.3.0
	google.golang.org/grpc v1.58.3
	tatcell.example/tatcell v0.0.0
)

replace tatcell.example/tatcell => ../
