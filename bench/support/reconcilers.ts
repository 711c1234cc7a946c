import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PROJECT } from "../../tests/support/child_process.ts";
import type { Measure, Subject } from "./bench.ts";
import { rivalCommand, type Toolchain } from "./built_rivals.ts";
import {
  measureCleanup,
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

/** Operator in another language. */
function built(
  toolchain: Toolchain,
  name: string,
  measured: Measured = measureOperator,
): Pick<Reconciler, "rival" | "needs" | "measure"> {
  return {
    rival: true,
    needs: toolchain,
    measure: (round) => {
      const { kubeconfig, objects } = round;
      const command = rivalCommand(
        toolchain,
        name,
        kubeconfig,
        String(objects),
      );
      return measured({ ...round, command });
    },
  };
}

const CORACLE = "patchStatus (merge patch); HTTP/1.1, own pool";

/** Operators of Greetings and baselines: the subjects of `reconcile`. */
export const RECONCILERS: readonly Reconciler[] = [
  { name: "coracle", measure: script("coracle"), settings: CORACLE },
  {
    name: "coracle, Deno",
    measure: script("coracle", "deno"),
    settings: CORACLE,
  },
  {
    name: "coracle, Bun",
    measure: script("coracle", "bun"),
    settings: CORACLE,
  },
  {
    name: "bare PATCH",
    rival: true,
    measure: script("patch", "node", measureWriter),
    settings:
      "no operator: ten merge patches at once by Coracle's transport on Node, each answer parsed by JSON.parse",
  },
  {
    name: "client-node, by hand",
    rival: true,
    measure: script("client-node"),
    settings:
      "patchNamespacedCustomObjectStatus (merge patch); HTTP/1.1, agent of the client",
  },
  {
    name: "controller-runtime",
    ...built("go", "reconcile"),
    settings:
      "Status().Update, GenerationChangedPredicate, QPS -1; HTTP/2, one connection",
  },
  {
    name: "bare Update",
    ...built("go", "update", measureWriter),
    settings:
      "no operator: ten Status().Update at once by controller-runtime's client",
  },
  {
    name: "JOSDK",
    ...built("mvn", "reconcile"),
    settings:
      "5.2.3, UpdateControl.patchStatus (server-side apply), generation aware; fabric8 7.5.2 over Vert.x, OpenJDK with its defaults",
  },
  {
    name: "kube-rs",
    ...built("cargo", "reconcile"),
    settings:
      "5.0.0, patch_status (server-side apply), predicates::generation; HTTP/1.1, pool of hyper",
  },
];

/** Operators of Greetings with a finalizer: the subjects of `cleanup`. */
export const CLEANERS: readonly Reconciler[] = [
  {
    name: "coracle",
    measure: script("coracle-cleanup", "node", measureCleanup),
  },
  {
    name: "coracle, Deno",
    measure: script("coracle-cleanup", "deno", measureCleanup),
  },
  {
    name: "coracle, Bun",
    measure: script("coracle-cleanup", "bun", measureCleanup),
  },
  {
    name: "controller-runtime",
    ...built("go", "cleanup", measureCleanup),
    settings: "controllerutil.AddFinalizer and RemoveFinalizer, Update",
  },
  {
    name: "JOSDK",
    ...built("mvn", "cleanup", measureCleanup),
    settings: "Cleaner",
  },
  {
    name: "kube-rs",
    ...built("cargo", "cleanup", measureCleanup),
    settings: "kube::runtime::finalizer",
  },
];

/** Operators of apps with ten dependents: the subjects of `dependents`. */
export const WORKFLOW_RUNNERS: readonly Reconciler[] = [
  { name: "coracle", measure: script("coracle-workflow") },
  { name: "coracle, Deno", measure: script("coracle-workflow", "deno") },
  { name: "coracle, Bun", measure: script("coracle-workflow", "bun") },
];
