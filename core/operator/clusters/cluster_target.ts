import type { ClientTarget } from "../../client/client_options.ts";
import {
  type ClusterConfig,
  type Credential,
  type CredentialSource,
  credentialSource,
} from "../../config/cluster_config.ts";
import type { Transport } from "../../client/transport/transport.ts";
import { jsonEquals } from "../../patch/json_value.ts";

/** Credentials of a cluster, which a later set of clusters may replace. */
class LatestCredentials implements CredentialSource {
  #source: CredentialSource;

  constructor(source: CredentialSource) {
    this.#source = source;
  }

  replace(source: CredentialSource): void {
    this.#source = source;
  }

  current(signal?: AbortSignal): Promise<Credential> {
    return this.#source.current(signal);
  }

  async refresh(
    refused: Credential,
    signal?: AbortSignal,
  ): Promise<Credential> {
    const source = this.#source;
    const credential = await source.current(signal);
    // The server may have refused one that has been replaced since.
    return credential === refused
      ? await source.refresh(refused, signal)
      : credential;
  }
}

/**
 * Where the client of a cluster sends its requests, while credentials and certificate
 * authorities are replaced by those of later sets of clusters.
 */
export class FollowedTarget {
  /** Target for the client. */
  readonly target: ClientTarget;
  readonly #place: ClientTarget;
  readonly #credentials: LatestCredentials | undefined;
  #authority: ClusterConfig["certificateAuthority"];

  constructor(given: ClientTarget) {
    this.#place = given;
    if ("transport" in given) {
      this.target = { ...given, transport: lent(given.transport) };
      return;
    }
    const { credentials, certificateAuthority } = given;
    this.#authority = certificateAuthority;
    this.#credentials = new LatestCredentials(credentialSource(credentials));
    this.target = {
      ...given,
      credentials: this.#credentials,
      certificateAuthority: certificateAuthority && (async () => {
        const authority = this.#authority;
        return typeof authority === "function"
          ? await authority()
          : authority as string;
      }),
    };
  }

  /**
   * Goes on with the credentials and authorities of a later target.
   *
   * @returns Whether it is the same place; another one needs another client.
   */
  follow(later: ClientTarget): boolean {
    const place = this.#place;
    if ("transport" in place || "transport" in later) {
      return "transport" in place && "transport" in later &&
        place.transport === later.transport &&
        place.namespace === later.namespace;
    }
    if (!jsonEquals(placeOf(place), placeOf(later))) return false;
    this.#authority = later.certificateAuthority;
    this.#credentials?.replace(credentialSource(later.credentials));
    return true;
  }
}

/** A transport of the program, which the end of a client does not close. */
function lent(transport: Transport): Transport {
  const connect = transport.connect?.bind(transport);
  return {
    send: (request) => transport.send(request),
    ...(connect && { connect }),
    close: () => Promise.resolve(),
  };
}

/** What makes a cluster another one, or another way to it. */
function placeOf(config: ClusterConfig): unknown {
  const { credentials: _, certificateAuthority, ...others } = config;
  const hasAuthority = certificateAuthority !== undefined;
  // Fields that are undefined are as good as absent.
  return JSON.parse(JSON.stringify({ ...others, hasAuthority }));
}
