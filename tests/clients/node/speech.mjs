// PCM16 at 24 kHz, as every client here sends it.

const BYTES_PER_MS = 48;
const HEADER_BYTES = 44;

// The tones in Hz that the scripted deployment takes for "Tell me a long story.", "What did you say?" and so on.
export const [STORY, REPEAT, WEATHER, HELLO] = [400, 700, 1000, 1300];

export const SILENCE = new Uint8Array(1000 * BYTES_PER_MS);

export const samplesOf = (wav) => wav.subarray(HEADER_BYTES);

export const durationMs = (bytes) => bytes / BYTES_PER_MS;

// A second of a sine.
export function tone(hertz) {
  const samples = Int16Array.from({ length: 24_000 }, (_, n) => 9000 * Math.sin((2 * Math.PI * hertz * n) / 24_000));
  return new Uint8Array(samples.buffer);
}

export function* chunks(...parts) {
  for (const pcm of parts) {
    for (let start = 0; start < pcm.length; start += 100 * BYTES_PER_MS) yield pcm.slice(start, start + 100 * BYTES_PER_MS);
  }
}

export function base64(bytes) {
  let text = "";
  for (let start = 0; start < bytes.length; start += 32_768) text += String.fromCharCode(...bytes.subarray(start, start + 32_768));
  return btoa(text);
}
