// Only the root of the module: go_programs.ts writes the one that builds.
module coracle.dev/tests/cluster/controlplane

go 1.26.8
