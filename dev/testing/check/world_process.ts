import process from "node:process";

/**
 * Replaces what ends the process, so that a simulated operator ends alone, and
 * records the errors that nobody handles.
 *
 * @returns Function that restores the process.
 */
export function replaceProcess(
  { exit, rejected }: {
    readonly exit: (code?: number | string | null) => never;
    readonly rejected: (error: unknown) => void;
  },
): () => void {
  const { exit: realExit } = process;
  process.exit = exit;
  process.on("unhandledRejection", rejected);
  process.on("uncaughtException", rejected);
  const signals = ["SIGTERM", "SIGINT"] as const;
  const listeners = signals.map((signal) => process.listeners(signal));
  return () => {
    signals.forEach((signal, index) => {
      for (const listener of process.listeners(signal)) {
        if (listeners[index]?.includes(listener)) continue;
        process.off(signal, listener as () => void);
      }
    });
    process.exit = realExit;
    process.off("unhandledRejection", rejected);
    process.off("uncaughtException", rejected);
  };
}
