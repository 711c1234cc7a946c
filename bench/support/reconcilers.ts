import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PROJECT } from "../../tests/support/child_process.ts";
import type { Measure, Subject } from "./bench.ts";
import { GO_RIVALS } from "./go_rivals.ts";
import {
  measureOperator,
  measureWriter,
  type ReconcileRound,
} from "./reconcile_round.ts";

/** Operator of Greetings, and how it is measured. */
export interface Reconciler extends Omit<Subject, "run"> {
  measure(round: Omit<ReconcileRound, "command">): Promise<readonly Measure[]>;
}

type RuntimeName = "node" | "deno" | "bun";

/** Command of a runtime; all of them are installed in the project. */
const RUNTIMES: Readonly<Record<RuntimeName, readonly string[]>> = {
  node: [program("node")],
  deno: [program("deno"), "run", "-A", "--no-check"],
  bun: [program("bun")],
};

function program(name: string): string {
  return join(PROJECT, "node_modules", ".bin", name);
}

type Measured = typeof measureOperator;

/** Command of an operator of `greeting_operators.ts`. */
export function scriptCommand(
  name: string,
  { kubeconfig, objects }: Pick<ReconcileRound, "kubeconfig" | "objects">,
  runtime: RuntimeName = "node",
): readonly string[] {
  const file = fileURLToPath(
    new URL("./greeting_operator.ts", import.meta.url),
  );
  return [...RUNTIMES[runtime], file, name, kubeconfig, String(objects)];
}

/** Operator in TypeScript. */
function script(
  name: string,
  runtime: RuntimeName = "node",
  measured: Measured = measureOperator,
): Reconciler["measure"] {
  return (round) =>
    measured({ ...round, command: scriptCommand(name, round, runtime) });
}

/** Operator in Go. */
function go(name: string, measured: Measured = measureOperator) {
  return (round: Omit<ReconcileRound, "command">) => {
    const { kubeconfig, objects } = round;
    const command = [GO_RIVALS, name, kubeconfig, String(objects)];
    return measured({ ...round, command });
  };
}

/** Operators of Greetings and baselines: the subjects of `reconcile`. */
export const RECONCILERS: readonly Reconciler[] = [
  { name: "coracle", measure: script("coracle") },
  { name: "coracle, Deno", measure: script("coracle", "deno") },
  { name: "coracle, Bun", measure: script("coracle", "bun") },
  {
    name: "bare PATCH",
    rival: true,
    measure: script("patch", "node", measureWriter),
  },
  {
    name: "client-node, by hand",
    rival: true,
    measure: script("client-node"),
  },
  {
    name: "controller-runtime",
    rival: true,
    needs: "go",
    measure: go("reconcile"),
  },
];
