import { openHttpTransport } from "../../core/client/transport/open_transport.ts";

/** Address of a server of Pods. */
export interface PodStreamAddress {
  readonly url: string;
  /** Certificate of its authority, in PEM. */
  readonly authority: string;
}

/** Bytes of a watch of all Pods, with the initial events. */
export async function* podChunks(
  { url, authority }: PodStreamAddress,
): AsyncGenerator<Uint8Array, void, undefined> {
  const transport = await openHttpTransport({
    server: url,
    certificateAuthority: authority,
  });
  const { body } = await transport.send({
    method: "GET",
    path: "/api/v1/pods?watch=true&sendInitialEvents=true",
    headers: {},
  });
  yield* body;
}
