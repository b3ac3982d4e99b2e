declare module 'mjml' {
  interface Options {
    readonly ignoreIncludes: true;
    readonly useMjmlConfigOptions: false;
    readonly validationLevel: 'strict';
    readonly keepComments: boolean;
    /** By the name of a font, the style sheet that readers' programs would fetch. */
    readonly fonts: Readonly<Record<string, string>>;
    /** What faults say the source is of; it has to be there. */
    readonly filePath: string;
  }
  /** Rejects where the source is not valid. */
  export default function mjml2html(source: string, options: Options): Promise<{ readonly html: string }>;
}

declare module 'html-to-text' {
  interface Options {
    readonly wordwrap: number;
    readonly limits: { readonly maxDepth: number; readonly ellipsis: string };
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

declare module 'smpp' {
  import type { EventEmitter } from 'node:events';
  import type { Server } from 'node:net';

  /** Fields of SMPP 3.4 by their names there; those of a refusal are absent. */
  export interface Pdu {
    readonly command: string;
    readonly command_status: number;
    readonly message_id?: string;
    readonly esm_class?: number;
    readonly data_coding?: number;
    readonly destination_addr?: string;
    readonly source_addr?: string;
    readonly short_message?: { readonly message?: string | Uint8Array };
    readonly message_payload?: { readonly message?: string | Uint8Array };
    readonly receipted_message_id?: string;
    readonly message_state?: number;
    response(fields?: Readonly<Record<string, unknown>>): Pdu;
  }

  type Fields = Readonly<Record<string, unknown>>;
  type Ask = (fields: Fields, answered?: (pdu: Pdu) => void) => boolean;

  export interface Session extends EventEmitter {
    readonly bind_transceiver: Ask;
    readonly submit_sm: Ask;
    readonly deliver_sm: Ask;
    readonly enquire_link: Ask;
    readonly unbind: Ask;
    send(pdu: Pdu): boolean;
    close(): void;
    destroy(): void;
  }

  const smpp: {
    connect(options: {
      readonly host: string;
      readonly port: number;
      readonly tls: boolean;
      readonly ca?: string;
    }): Session;
    createServer(listener: (session: Session) => void): Server;
  };
  export default smpp;
}
