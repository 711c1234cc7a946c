import { apiserverCommand } from "./apiserver_command.ts";
import type { Command } from "./command.ts";
import { crdCommand } from "./crd_command.ts";
import { devCommand } from "./dev_command.ts";

/** The commands of `coracle`, in the order of its help. */
export const COMMANDS: readonly Command[] = [
  devCommand,
  crdCommand,
  apiserverCommand,
];
