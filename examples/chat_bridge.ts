/**
 * Operator that listens to a chat. A Channel follows a room, and its status has
 * the number of messages and the last one:
 *
 *     apiVersion: sample.coracle.dev/v1
 *     kind: Channel
 *     metadata: { name: harbour }
 *     spec: { room: "#harbour" }
 *
 * The chat server at CHAT_URL sends JSON: `{"room":"#harbour","text":"Ahoy"}`.
 */
import {
  defineKind,
  type ObjectOf,
  Operator,
  setStatus,
} from "@coracle/operator";
import { websocketSource } from "@coracle/operator/sources";
import process from "node:process";
import { z } from "zod";

const Channel = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Channel",
  spec: z.object({ room: z.string().min(1) }),
  status: z.object({ messages: z.int(), lastMessage: z.string() }).partial(),
  printerColumns: [
    { name: "Room", type: "string", jsonPath: ".spec.room" },
    { name: "Messages", type: "integer", jsonPath: ".status.messages" },
  ],
});
type Channel = ObjectOf<typeof Channel>;

const Message = z.object({ room: z.string(), text: z.string().max(1_000) });

/** Messages since the start of the operator, by the rooms of Channels. */
const heard = new Map<string, { messages: number; lastMessage: string }>();

// Reconnects automatically. A message for which this throws is logged and dropped.
const chat = websocketSource<Channel>({
  name: "chat",
  url: process.env["CHAT_URL"] ?? "ws://127.0.0.1:8080/",
  primaries(bytes, known) {
    const { room, text } = Message.parse(
      JSON.parse(new TextDecoder().decode(bytes)),
    );
    const channels = known.list().filter(({ spec }) => spec.room === room);
    if (channels.length > 0) {
      const { messages = 0 } = heard.get(room) ?? {};
      heard.set(room, { messages: messages + 1, lastMessage: text });
    }
    return channels.map(({ metadata }) => metadata);
  },
});

const operator = new Operator();

operator.register(Channel, {
  // One run reports all messages since the last one.
  reconcile: ({ spec }) => setStatus(heard.get(spec.room) ?? { messages: 0 }),
}, { sources: [chat], install: true });

await operator.run();
