declare module 'mjml' {
  interface Options {
    readonly ignoreIncludes: true;
    readonly useMjmlConfigOptions: false;
    readonly validationLevel: 'strict';
    readonly keepComments: boolean;
    /** By the name of a font, the style sheet that readers' programs would fetch. */
    readonly fonts: Readonly<Record<string, string>>;
  }
  /** Rejects where the source is not valid. */
  export default function mjml2html(source: string, options: Options): Promise<{ readonly html: string }>;
}

declare module 'html-to-text' {
  interface Options {
    readonly wordwrap: number;
    readonly selectors: readonly {
      readonly selector: string;
      readonly format?: string;
      readonly options?: Readonly<Record<string, unknown>>;
    }[];
  }
  export function convert(html: string, options: Options): string;
}

declare module 'http_ece' {
  import type { ECDH } from 'node:crypto';

  interface Parameters {
    readonly version: 'aes128gcm';
    readonly privateKey: ECDH;
    readonly authSecret: string;
  }
  const ece: { decrypt(body: Buffer, parameters: Parameters): Buffer };
  export default ece;
}
