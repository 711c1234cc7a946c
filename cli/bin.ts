#!/usr/bin/env node
import process from "node:process";
import { runCli } from "./main.ts";

// A file that was only imported may have left timers or servers behind.
const code = await runCli(process.argv.slice(2));
process.stdout.write("", () => process.exit(code));
