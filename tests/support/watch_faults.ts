import {
  type Fault,
  sendEvent,
  sendStatus,
  statusBody,
} from "./fake_watch_call.ts";

/** Resets the connection before any answer. */
export const resetAtOnce: Fault = ({ response }) => {
  response.reset();
};

/** Answers with a status. */
export function refuse(
  code: number,
  reason: string,
  headers: Record<string, string> = {},
): Fault {
  return ({ response }) => sendStatus(response, code, reason, headers);
}

/** Takes the request and never answers. */
export const neverAnswer: Fault = () => {};

/** Sends the head of an answer and nothing more. */
export const fallSilent: Fault = ({ response }) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
};

/** Ends the stream in order without an event. */
export const endAtOnce: Fault = ({ response }) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.end();
};

/** Sends some bytes and then ends, resets or stalls the connection. */
export function sendThen(
  bytes: string | Uint8Array,
  then: "end" | "reset" | "stay",
): Fault {
  return ({ response }) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.write(bytes, () => {
      if (then === "end") response.end();
      if (then === "reset") response.reset();
    });
  };
}

/** Ends the watch with an ERROR event. */
export function errorEvent(code: number, reason: string): Fault {
  return (call) => {
    call.response.writeHead(200, { "content-type": "application/json" });
    sendEvent(call, "ERROR", statusBody(code, reason));
    call.response.end();
  };
}
