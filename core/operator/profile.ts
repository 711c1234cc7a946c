import process from "node:process";
import { type Clock, sleep } from "../clock.ts";

/** What a profile shows: where time goes, or who allocates the memory in use. */
export type ProfileSubject = "cpu" | "heap";

export const PROFILE_SUBJECTS: readonly ProfileSubject[] = ["cpu", "heap"];

/** Bytes between two allocations that are recorded, on average. */
const HEAP_INTERVAL_BYTES = 32_768;

/** Commands of the inspector that begin and end a profile. */
const COMMANDS = {
  cpu: {
    before: "Profiler.enable",
    start: "Profiler.start",
    stop: "Profiler.stop",
  },
  heap: {
    before: "HeapProfiler.enable",
    start: "HeapProfiler.startSampling",
    stop: "HeapProfiler.stopSampling",
  },
} as const;

/** A profile that the runtime cannot make. */
export class ProfileError extends Error {}

/** Session of the inspector, with commands by name. */
interface InspectorSession {
  connect(): void;
  disconnect(): void;
  post(
    command: string,
    parameters: object,
    done: (error: Error | null, result?: object) => void,
  ): void;
}

/**
 * Records a profile of this process, for the developer tools of Chrome: the content
 * of a `.cpuprofile`, or of a `.heapprofile` with the allocations of that time whose
 * memory is still in use.
 *
 * @param duration Time of the recording, in milliseconds.
 * @throws {ProfileError} If the runtime has no such profiles: Bun has none of memory.
 * @throws The reason of the signal, if it aborts.
 */
export async function recordProfile(
  subject: ProfileSubject,
  duration: number,
  options: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<object> {
  const session = openSession();
  const post = (command: string) =>
    new Promise<object>((resolve, reject) =>
      session.post(
        command,
        { samplingInterval: HEAP_INTERVAL_BYTES },
        (error, result) => error ? reject(error) : resolve(result ?? {}),
      )
    );
  const { before, start, stop } = COMMANDS[subject];
  try {
    try {
      await post(before);
      await post(start);
    } catch (error) {
      throw new ProfileError(
        `Cannot record a profile: this runtime has no profiles of the ${subject}`,
        { cause: error },
      );
    }
    await sleep(duration, options);
    return (await post(stop) as { readonly profile: object }).profile;
  } finally {
    session.disconnect();
  }
}

function openSession(): InspectorSession {
  try {
    const { Session } = process.getBuiltinModule("node:inspector");
    const session = new Session() as unknown as InspectorSession;
    session.connect();
    return session;
  } catch (error) {
    throw new ProfileError(
      "Cannot record a profile: this runtime has no inspector",
      { cause: error },
    );
  }
}
