import type { ObjectHeader } from "../../json/object_header.ts";

/** What an event of a watch tells of an object. */
export type ChangeType = "ADDED" | "MODIFIED" | "DELETED";

/**
 * Takes what a reflector reads. Headers are valid during the call only.
 *
 * Expected flow: `beginState`, any number of `item` and `change`, `endState`,
 * then `change` and `progress` until the next `beginState`. A state that was
 * begun and not ended is begun anew.
 */
export interface ReflectorSink {
  /** The whole state follows. */
  beginState(): void;
  /** One object of the state. */
  item(header: ObjectHeader): void;
  /**
   * The state is complete: what was not in it does not exist. Nothing else
   * comes until the promise resolves.
   *
   * @param resourceVersion Which state it is.
   * @throws {ConnectionFault} If the state must be read again.
   */
  endState(resourceVersion: string): Promise<void>;
  /** One object changed. */
  change(type: ChangeType, header: ObjectHeader): void;
  /** All changes up to this state have been told. */
  progress(resourceVersion: string): void;
  /** A slice of work is done, or the stream rests. */
  rest(): void;
}
