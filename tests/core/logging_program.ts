/**
 * Program that logs lines to standard error until one is lost, then ten more, and
 * prints how many were lost. Its argument is the number of lines before it gives
 * up.
 */
import process from "node:process";
import { jsonLogger, lostLogLines } from "../../core/logger.ts";

const log = jsonLogger();
const limit = Number(process.argv.at(-1));
let written = 0;
let left = 10;
const timer = setInterval(() => {
  log.warn("Something went wrong", { number: ++written });
  if (lostLogLines() === 0 && written < limit) return;
  if (left-- > 0) return;
  clearInterval(timer);
  // deno-lint-ignore no-console -- standard output is how it answers
  console.log(JSON.stringify({ written, lost: lostLogLines() }));
}, 5);
