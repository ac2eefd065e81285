// A session as its driver follows it: every server event that the client hands on comes in.

const WAIT_MS = 30_000;

export class Talk {
  // `send` sends an event through the client; { raw } is a text frame as it is, { binary } the other kind.
  constructor(send) {
    this.send = send;
    this.events = [];
    this.taken = 0;
    this.ended = false;
    this.changed = () => {};
  }

  add(event) {
    this.events.push(event);
    this.changed();
  }

  end() {
    this.ended = true;
    this.changed();
  }

  // Takes events until each of these kinds has come; an error that is not among them fails the check.
  async until(...kinds) {
    const taken = [];
    const missing = new Set(kinds);
    while (missing.size) {
      const event = await this.#next();
      if (!event) throw new Error(`the connection was closed after ${this.#lastKinds()}`);
      if (event.type === "error" && !kinds.includes("error")) throw new Error(JSON.stringify(event));
      taken.push(event);
      missing.delete(event.type);
    }
    return taken;
  }

  // Takes events until the server closes.
  async rest() {
    const taken = [];
    for (let event; (event = await this.#next()); ) taken.push(event);
    return taken;
  }

  async #next() {
    while (this.taken === this.events.length) {
      if (this.ended) return undefined;
      await within(WAIT_MS, new Promise((resolve) => (this.changed = resolve)), () => `nothing came after ${this.#lastKinds()}`);
    }
    return this.events[this.taken++];
  }

  #lastKinds() {
    return this.events.slice(-5).map((event) => event.type).join(", ");
  }
}

export async function within(ms, promise, complaint) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`${complaint()} for ${ms} ms`)), ms)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// A frame as a WebSocket takes it.
export function frameOf({ raw, binary, ...event }) {
  return binary === undefined ? (raw ?? JSON.stringify(event)) : new TextEncoder().encode(binary);
}

// The code of an error, of a failed response or of a failed transcription.
export const codeOf = (event) => (event.type === "response.done" ? event.response.status_details.error : event.error).code;

// The text of a response.done.
export const written = ({ response }) =>
  response.output.flatMap((item) => item.content ?? []).map((part) => part.text ?? part.transcript ?? "").join(" ");
