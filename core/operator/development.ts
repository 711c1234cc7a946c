import type { Kind } from "../api/kind.ts";
import type { Logger } from "../logger.ts";

/** What a tool sees of an operator that a file has made. */
export interface OperatorHandle {
  /** What it reconciles, and what else its controllers watch. */
  readonly controllers: readonly {
    readonly name: string;
    readonly kind: Kind;
    /** The kinds that it keeps, which are those of its event sources. */
    readonly secondaryKinds: readonly Kind[];
    /** The kinds that it only watches. */
    readonly readOnlyKinds: readonly Kind[];
    /**
     * Whether it applies the definition of its kind at start, and what runs
     * before its reconciler.
     */
    readonly settings: {
      readonly install: boolean;
      readonly workflow?: { toMermaid?(): string } | undefined;
    };
  }[];
  /**
   * Starts it and resolves when its caches are synced. On an operator that was
   * started already it only waits for that.
   */
  start(): Promise<void>;
  /** Stops it in order; safe to call at any time and more than once. */
  stop(): Promise<void>;
}

/**
 * What a tool that loads operator files, such as `coracle dev`, asks of the
 * operators in them. The files stay as they are: an operator looks here when it
 * is made.
 */
export interface Development {
  /**
   * Whether operators run. Where they do not, `start` and `run` return at once:
   * the tool only wants to know what the file has.
   */
  readonly runs: boolean;
  /** Where operators log that were not given a logger of their own. */
  readonly logger?: Logger | undefined;
  /** Told of each operator as soon as it is made. */
  operatorMade(operator: OperatorHandle): void;
  /** Told when the caches of an operator are synced: it reconciles now. */
  operatorStarted?(operator: OperatorHandle): void;
}

/** Tool and file may have loaded two copies of the library. */
const SWITCH = Symbol.for("@coracle/operator/development");

/** What the tool that loads this program asks; undefined in production. */
export function development(): Development | undefined {
  return (globalThis as Record<symbol, Development | undefined>)[SWITCH];
}

/** Sets or, with undefined, ends what {@linkcode development} tells. */
export function setDevelopment(value: Development | undefined): void {
  (globalThis as Record<symbol, Development | undefined>)[SWITCH] = value;
}
