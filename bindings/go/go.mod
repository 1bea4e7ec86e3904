module tatcell.example/tatcell

go 1.19
