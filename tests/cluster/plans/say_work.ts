/**
 * Lets the program of an operator say, on its standard output, whether it has work:
 * runs in progress, or objects that wait for one. An operator that waits for
 * something outside of the cluster, such as a database that starts, changes nothing
 * in the cluster and still is not done.
 *
 * @module
 */
import process from "node:process";
import { Operator } from "@coracle/operator";

/** Line of an operator whose work begins. */
export const AT_WORK = "-- at work --";
/** Line of an operator that has nothing to do now. */
export const AT_REST = "-- at rest --";

/** Milliseconds between two looks at the work of an operator. */
const LOOK_MS = 50;

/** Whether the last line of an operator about its work says that it has some. */
export function isAtWork(output: string): boolean {
  return output.lastIndexOf(AT_WORK) > output.lastIndexOf(AT_REST);
}

/** Arguments of Node that load this module before a program. */
export const SAYS_WORK: readonly string[] = [
  "--import",
  `data:text/javascript,import{sayWork}from"${import.meta.url}";sayWork()`,
];

/** Lets all operators of this process say whether they have work. */
export function sayWork(): void {
  const { start } = Operator.prototype;
  Operator.prototype.start = function () {
    let last: string | undefined;
    setInterval(() => {
      const isBusy = this.health().controllers.some(({ running, waiting }) =>
        running + waiting > 0
      );
      const now = isBusy ? AT_WORK : AT_REST;
      if (now !== last) process.stdout.write(`${now}\n`);
      last = now;
    }, LOOK_MS).unref();
    return start.call(this);
  };
}
