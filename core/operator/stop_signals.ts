import { hostProcess } from "../config/host_process.ts";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/**
 * Listens for the signals by which a process is asked to end.
 *
 * @param listener Called with the signal and how many there have been.
 * @returns Takes the listener away again, so that the signals kill as usual.
 */
export function onStopSignal(
  listener: (signal: string, count: number) => void,
): () => void {
  let count = 0;
  const listeners = SIGNALS.map((signal) => {
    const handle = () => listener(signal, ++count);
    hostProcess.on(signal, handle);
    return () => hostProcess.off(signal, handle);
  });
  return () => {
    for (const remove of listeners) remove();
  };
}
