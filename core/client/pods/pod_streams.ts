import type { ObjectKey } from "../../api/object_key.ts";
import type { Connection } from "../connection.ts";
import { ContainerProcess } from "./container_process.ts";
import { logLines } from "./log_lines.ts";
import type {
  AttachOptions,
  ExecOptions,
  LogOptions,
  PortForwardOptions,
} from "./pod_requests.ts";
import {
  attachRequest,
  execRequest,
  logRequest,
  portForwardRequest,
} from "./pod_requests.ts";
import { PortConnection, PortForward } from "./port_forward.ts";

/** What flows between a client and a single pod, beside its object. */
export class PodStreams {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Reads the log of a container, line by line. */
  async *logs(
    key: ObjectKey,
    options: LogOptions,
  ): AsyncGenerator<string, void, undefined> {
    const response = await this.#connection.request(logRequest(key, options));
    yield* logLines(response.body);
  }

  /** Runs a command in a container. */
  async exec(key: ObjectKey, options: ExecOptions): Promise<ContainerProcess> {
    const request = execRequest(key, options);
    const stream = await this.#connection.stream(request);
    return new ContainerProcess(stream, request.action);
  }

  /** Connects to the program that a container runs. */
  async attach(
    key: ObjectKey,
    options: AttachOptions,
  ): Promise<ContainerProcess> {
    const request = attachRequest(key, options);
    const stream = await this.#connection.stream(request);
    return new ContainerProcess(stream, request.action);
  }

  /** Gives the way to a port. */
  portForward(key: ObjectKey, options: PortForwardOptions): PortForward {
    const request = portForwardRequest(key, options);
    return new PortForward(async () => {
      const stream = await this.#connection.stream(request);
      return new PortConnection(stream, request.action);
    });
  }
}
