#!/usr/bin/env node
import process from "node:process";
import { keepCompiledModules } from "./compile_cache.ts";

keepCompiledModules();
const { runCli } = await import("./main.ts");

// A file that was only imported may have left timers or servers behind.
// In Bun only the end of a pipe waits for what was written to it.
const code = await runCli(process.argv.slice(2));
// What cannot be written has no end, or one before its error is known.
process.exitCode = code;
process.stdout.end(() => setImmediate(() => process.exit(code)));
