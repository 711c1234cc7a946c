import { Client, loadConfig, systemClock } from "@coracle/operator/client";
import { clientSettings, openConnection } from "@coracle/operator/internal";
import { ReadOnlyTransport } from "../testing/plan/read_only_transport.ts";
import type { ClusterReader } from "../testing/plan/read_cluster.ts";
import {
  type CommandTerminal,
  type FlagValues,
  UsageError,
} from "./command.ts";
import { listOf, textOf } from "./serving.ts";

/** Flags of the commands that read a cluster. */
export const CLUSTER_FLAGS = {
  "kubeconfig FILE": "kubeconfig; by default as kubectl finds it",
  "context NAME": "context of the kubeconfig; by default the current one",
  "namespace NAME…": "namespaces to read; by default all",
  "selector LABELS": "labels of the operator's own objects to read",
} as const;

/** Name of a namespace. */
const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * Attempts of a request, whose delays are three seconds together: somebody waits for
 * the answer.
 */
const MAX_ATTEMPTS = 6;

/** Namespaces of the flags; undefined for all. */
export function namespacesOf(
  flags: FlagValues,
): readonly string[] | undefined {
  const names = listOf(flags, "namespace");
  for (const name of names) {
    if (NAMESPACE.test(name)) continue;
    throw new UsageError(
      `Cannot use --namespace: it must be the name of a namespace: received "${name}"`,
    );
  }
  return names.length === 0 ? undefined : names;
}

/** Opens the cluster of the flags for reading; its client can do nothing else. */
export async function openCluster(
  flags: FlagValues,
): Promise<ClusterReader & { close(): Promise<void> }> {
  const config = await loadConfig({
    kubeconfig: textOf(flags, "kubeconfig"),
    context: textOf(flags, "context"),
  });
  const transport = new ReadOnlyTransport(
    openConnection(
      config,
      clientSettings(config, { retry: { maxAttempts: MAX_ATTEMPTS } }),
    ),
  );
  const client = new Client({ transport }, {
    clock: systemClock,
    retry: false,
  });
  return { client, transport, close: () => client.close() };
}

/** Interval of progress lines without a terminal, in milliseconds. */
const LINE_INTERVAL_MS = 5_000;
/** Interval of updates on a terminal, in milliseconds. */
const DRAW_INTERVAL_MS = 100;

/** Progress of long work: a line that changes on a terminal, else a few lines. */
export function progressLine(terminal: CommandTerminal): {
  show(text: string): void;
  end(): void;
} {
  let last = -Infinity;
  let isShown = false;
  const now = performance.now.bind(performance);
  const erase = () => {
    if (isShown) terminal.draw("\r\x1b[K");
    isShown = false;
  };
  return {
    show(text) {
      const interval = terminal.colors ? DRAW_INTERVAL_MS : LINE_INTERVAL_MS;
      if (now() - last < interval) return;
      last = now();
      erase();
      isShown = terminal.colors;
      terminal.say(terminal.colors ? text : `${text}\n`);
    },
    end: erase,
  };
}
