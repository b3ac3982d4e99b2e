/** What a bare server answers. */
export interface Answer {
  /** Without headers that every server adds by itself: date, connection, content-length. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
