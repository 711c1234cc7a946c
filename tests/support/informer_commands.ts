import { fc } from "./property.ts";
import type { Fault } from "./fake_watch_call.ts";
import {
  endAtOnce,
  errorEvent,
  fallSilent,
  neverAnswer,
  refuse,
  resetAtOnce,
  sendThen,
} from "./watch_faults.ts";

/** Faults of a call. */
export const FAULTS: readonly Fault[] = [
  endAtOnce,
  errorEvent(410, "Expired"),
  errorEvent(500, "InternalError"),
  fallSilent,
  neverAnswer,
  refuse(403, "Forbidden"),
  refuse(404, "NotFound"),
  refuse(410, "Expired"),
  refuse(422, "Invalid"),
  refuse(429, "TooManyRequests", { "retry-after": "3" }),
  refuse(500, "InternalError"),
  resetAtOnce,
  sendThen("garbage\n", "stay"),
  sendThen('{"type":"ADDED","object":{"meta', "reset"),
  sendThen('{"type":"ADDED","object":{"meta', "end"),
  // Serves for a while and then breaks.
  (call) => {
    call.serve();
    setImmediate(() => call.response.reset());
  },
];

/** Step of a history: an act on an informer or on its server. */
export type Command =
  | {
    /**
     * Kind of the write: a foreign one, or an own one that stays in progress.
     */
    readonly do: "put" | "own";
    readonly key: string;
    /** Whether the object has the label of the selector. */
    readonly on: boolean;
  }
  | { readonly do: "delete"; readonly key: string }
  | { readonly do: "answer" | "fail"; readonly which: number }
  | {
    readonly do: "fault";
    readonly verb: "list" | "watch";
    readonly fault: number;
  }
  | { readonly do: "end"; readonly how: "clean" | "reset" }
  | { readonly do: "advance"; readonly by: number }
  | {
    readonly do: "namespaces";
    readonly to: readonly string[] | undefined;
  }
  | {
    readonly do:
      | "bookmark"
      | "compact"
      | "listen"
      | "lose"
      | "pages"
      | "settle"
      | "turn";
  };

const KEY = fc.constantFrom("one/a", "one/b", "two/a");

/** Most objects have the label. */
const ON = fc.constantFrom(true, true, false);

const CHANGE_OF_NAMESPACES: fc.Arbitrary<Command> = fc.record({
  do: fc.constant("namespaces" as const),
  to: fc.constantFrom(undefined, ["one"], ["two"], ["one", "two"]),
});

const COMMANDS: readonly fc.WeightedArbitrary<Command>[] = [
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom("put" as const, "own" as const),
      key: KEY,
      on: ON,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("delete" as const), key: KEY }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "answer" as const,
        "answer" as const,
        "fail" as const,
      ),
      which: fc.nat(3),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("fault" as const),
      verb: fc.constantFrom("list" as const, "watch" as const),
      fault: fc.nat(FAULTS.length - 1),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("end" as const),
      how: fc.constantFrom("clean" as const, "reset" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      by: fc.integer({ min: 1, max: 100_000 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "compact" as const,
        "bookmark" as const,
        "settle" as const,
        "turn" as const,
        "turn" as const,
        "pages" as const,
        "listen" as const,
        "lose" as const,
      ),
    }),
  },
];

/**
 * Arbitrary histories.
 *
 * @param options `moves`: whether the informer's namespaces change.
 */
export function historyOfCommands(
  { moves }: { readonly moves: boolean },
): fc.Arbitrary<Command[]> {
  const commands = moves
    ? [...COMMANDS, { weight: 3, arbitrary: CHANGE_OF_NAMESPACES }]
    : COMMANDS;
  return fc.array(fc.oneof(...commands), { maxLength: 40 });
}
