module dotnetipc

go 1.24
