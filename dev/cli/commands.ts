import { apiserverCommand } from "./apiserver_command.ts";
import { checkCommand } from "./check_command.ts";
import type { Command } from "./command.ts";
import { crdCommand } from "./crd_command.ts";
import { devCommand } from "./dev_command.ts";
import { envtestCommand } from "./envtest_command.ts";
import { kindsCommand } from "./kinds_command.ts";
import { planCommand } from "./plan_command.ts";
import { replayCommand } from "./replay_command.ts";
import { sizeCommand } from "./size_command.ts";
import { snapshotCommand } from "./snapshot_command.ts";
import { manifestsCommand } from "./manifests_command.ts";
import { migrateCommand } from "./migrate_command.ts";
import { uiCommand } from "./ui_command.ts";
import { whyCommand } from "./why_command.ts";

/** The commands of `coracle`, in the order of its help. */
export const COMMANDS: readonly Command[] = [
  devCommand,
  crdCommand,
  kindsCommand,
  manifestsCommand,
  migrateCommand,
  apiserverCommand,
  envtestCommand,
  checkCommand,
  planCommand,
  snapshotCommand,
  replayCommand,
  whyCommand,
  uiCommand,
  sizeCommand,
];
