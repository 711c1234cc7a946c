import { join } from "node:path";
import { PROJECT } from "../../tests/support/child_process.ts";

export type RuntimeName = "node" | "deno" | "bun";

/** Environment of the Deployment that `coracle manifests` prints, for glibc. */
const ENVIRONMENT = [
  "env",
  "MALLOC_ARENA_MAX=2",
  "MALLOC_MMAP_THRESHOLD_=262144",
];

/**
 * Command of a runtime, with the flags of the Deployment that `coracle manifests`
 * prints, and of the Dockerfile of a new project. All of them are installed in the project.
 */
export const DEPLOYED: Readonly<Record<RuntimeName, readonly string[]>> = {
  node: [
    ...ENVIRONMENT,
    program("node"),
    "--max-semi-space-size=4",
    "--single-threaded",
    "--heap-growing-percent=30",
    "--no-allocation-site-pretenuring",
  ],
  deno: [
    ...ENVIRONMENT,
    program("deno"),
    ...["run", "-A", "--no-check"],
    "--v8-flags=--max-semi-space-size=4,--heap-growing-percent=50",
  ],
  bun: [...ENVIRONMENT, program("bun")],
};

/** Program that is installed in the project. */
export function program(name: string): string {
  return join(PROJECT, "node_modules", ".bin", name);
}
