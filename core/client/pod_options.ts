import type { OptionRules } from "../api/option_rules.ts";
import type { RequestOptions } from "./request_options.ts";

/** Options of reading a container's log. */
export interface LogOptions extends RequestOptions {
  /**
   * Which container.
   *
   * @default {the pod's only one}
   */
  readonly container?: string | undefined;
  /**
   * Whether to go on with what the container writes from now on, until it ends.
   *
   * @default {false}
   */
  readonly follow?: boolean | undefined;
  /**
   * Whether to read the log of the container's last run instead.
   *
   * @default {false}
   */
  readonly previous?: boolean | undefined;
  /**
   * Only lines of the last so many seconds.
   *
   * @default {all}
   */
  readonly sinceSeconds?: number | undefined;
  /**
   * Only lines since this time (RFC 3339).
   *
   * @default {all}
   */
  readonly sinceTime?: string | undefined;
  /**
   * Only the last so many lines.
   *
   * @default {all}
   */
  readonly tailLines?: number | undefined;
  /**
   * No more than so many bytes.
   *
   * @default {no limit}
   */
  readonly limitBytes?: number | undefined;
  /**
   * Whether each line begins with its time.
   *
   * @default {false}
   */
  readonly timestamps?: boolean | undefined;
}

/** Options of attaching to a container. */
export interface AttachOptions extends RequestOptions {
  /**
   * Which container.
   *
   * @default {the pod's first one, or the one an annotation names}
   */
  readonly container?: string | undefined;
  /**
   * Whether there is input.
   *
   * @default {false}
   */
  readonly stdin?: boolean | undefined;
  /**
   * Whether the output is wanted.
   *
   * @default {true}
   */
  readonly stdout?: boolean | undefined;
  /**
   * Whether the error output is wanted; with a terminal it is part of the
   * output.
   *
   * @default {true without a terminal}
   */
  readonly stderr?: boolean | undefined;
  /**
   * Whether the program gets a terminal.
   *
   * @default {false}
   */
  readonly tty?: boolean | undefined;
}

/** Options of running a command in a container. */
export interface ExecOptions extends AttachOptions {
  /** The program and its arguments; there is no shell between. */
  readonly command: readonly string[];
}

/** Options of a connection to a port of a pod. */
export interface PortForwardOptions extends RequestOptions {
  /** The port in the pod. */
  readonly port: number;
}

const ATTACH: OptionRules<AttachOptions> = {
  signal: "signal?",
  container: "string?",
  stdin: "boolean?",
  stdout: "boolean?",
  stderr: "boolean?",
  tty: "boolean?",
};

/** What the options of each request on a pod must be. */
export const POD_RULES: {
  readonly logs: OptionRules<LogOptions>;
  readonly attach: OptionRules<AttachOptions>;
  readonly exec: OptionRules<ExecOptions>;
  readonly portForward: OptionRules<PortForwardOptions>;
} = {
  logs: {
    signal: "signal?",
    container: "string?",
    follow: "boolean?",
    previous: "boolean?",
    sinceSeconds: "count?",
    sinceTime: "string?",
    tailLines: "size?",
    limitBytes: "count?",
    timestamps: "boolean?",
  },
  attach: ATTACH,
  exec: { ...ATTACH, command: "strings" },
  portForward: { signal: "signal?", port: "port" },
};
