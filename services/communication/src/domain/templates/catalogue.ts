import { isDeepStrictEqual } from 'node:util';
import { commonError, invalidRequest } from '@rollcall/platform/common-errors.ts';
import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import { CommunicationError } from '../../errors.ts';
import {
  type PublishedTemplate,
  publishTemplate,
  type Reader,
  type RenderedMail,
  renderTemplate,
  type TemplateDefinition,
} from './templates.ts';

/** Whose template, and which. */
export interface TemplateKey {
  readonly subject: string;
  readonly name: string;
}

/** A template as lists have it. */
export interface TemplateSummary {
  readonly name: string;
  /** 0: it is built in. */
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A version that can be read by its number. */
export interface TemplateVersion {
  readonly version: number;
  readonly createdAt: Date;
}

/** What an author wrote, and what is rendered of it. */
interface TemplateContent {
  readonly definition: TemplateDefinition;
  readonly published: PublishedTemplate;
}

/** A version of a template. */
export interface StoredTemplate extends TemplateSummary, TemplateContent {}

/** What may become the newest version. */
export interface TemplateWrite extends TemplateKey, TemplateContent {
  /**
   * Whether it is kept beside the newest version that there is. May throw.
   *
   * @param others how many other templates the subject has.
   */
  readonly decide: (present: StoredTemplate | undefined, others: number) => 'keep' | 'leave';
}

/** Templates of subjects, as they are stored. */
export interface TemplateStore {
  /** Those of a subject come one after another. @returns the newest version then. */
  write(write: TemplateWrite): Promise<StoredTemplate>;
  /** @param version also of a template that was deleted; absent: the newest of one that was not. */
  find(key: TemplateKey, version?: number): Promise<StoredTemplate | undefined>;
  /** Those that are kept, newest first; also of a template that was deleted. */
  versions(key: TemplateKey): Promise<readonly TemplateVersion[]>;
  /** With those of `builtIn` that the subject has not. */
  list(subject: string, builtIn: readonly TemplateSummary[], page: ListPage): Promise<NewestPage<TemplateSummary>>;
  /** @param permit throws where that version may not be deleted. @returns whether there was one. */
  remove(key: TemplateKey, permit: (version: number) => void): Promise<boolean>;
}

/** Whether a caller wants to change what has this version; undefined: what is not there. */
type Expectation = (version: number | undefined) => boolean;

/** A template that is built in is version 0 of its name, and goes on being it. */
const BUILT_IN = 0;
/** Of one subject. */
const MOST_TEMPLATES = 500;

export interface TemplatesDeps {
  readonly store: TemplateStore;
  /** Each of version 0. */
  readonly builtIn: readonly StoredTemplate[];
}

/** Templates by their names: those of a subject, and those that are built in. */
export interface Templates {
  /**
   * Keeps a new version, unless the newest is the same.
   *
   * @returns it, and whether there was none of that name.
   * @throws ServiceError INVALID_REQUEST with all faults, PRECONDITION_FAILED, TOO_MANY_TEMPLATES.
   */
  put(
    key: TemplateKey,
    definition: TemplateDefinition,
    isExpected: Expectation,
  ): Promise<{ readonly template: StoredTemplate; readonly isNew: boolean }>;
  /** The newest version, or that one. A subject's own goes before the one that is built in. */
  find(key: TemplateKey, version?: number): Promise<StoredTemplate | undefined>;
  /** All that {@link find} has by a number, newest first: the built-in one comes last. */
  versions(key: TemplateKey): Promise<readonly TemplateVersion[]>;
  list(subject: string, page: ListPage): Promise<NewestPage<TemplateSummary>>;
  /** @throws ServiceError NOT_FOUND, PRECONDITION_FAILED. */
  remove(key: TemplateKey, isExpected: Expectation): Promise<void>;
}

export function createTemplates({ store, builtIn }: TemplatesDeps): Templates {
  const builtInByName = new Map(builtIn.map((template) => [template.name, template]));

  return {
    async put(key, definition, isExpected) {
      const result = await publishTemplate(definition);
      if ('faults' in result)
        throw invalidRequest(result.faults.map(({ path, message }) => ({ path: `body${path}`, message })));
      let isNew = false;
      const template = await store.write({
        ...key,
        definition,
        published: result.template,
        decide(present, others) {
          // A repetition of a call whose answer was lost is no change.
          if (isDeepStrictEqual(present?.definition, definition)) return 'leave';
          if (!isExpected((present ?? builtInByName.get(key.name))?.version))
            throw new CommunicationError('PRECONDITION_FAILED');
          if (others >= MOST_TEMPLATES) throw new CommunicationError('TOO_MANY_TEMPLATES');
          isNew = present === undefined;
          return 'keep';
        },
      });
      return { template, isNew };
    },
    async find(key, version) {
      const ofAll = builtInByName.get(key.name);
      if (version === BUILT_IN) return ofAll;
      return (await store.find(key, version)) ?? (version === undefined ? ofAll : undefined);
    },
    async versions(key) {
      const ofAll = builtInByName.get(key.name);
      return [...(await store.versions(key)), ...(ofAll === undefined ? [] : [ofAll])];
    },
    list: (subject, page) => store.list(subject, builtIn, page),
    async remove(key, isExpected) {
      const isRemoved = await store.remove(key, (version) => {
        if (!isExpected(version)) throw new CommunicationError('PRECONDITION_FAILED');
      });
      if (!isRemoved) throw commonError('NOT_FOUND');
    },
  };
}

/** A template that may become a mail. */
export type UsableTemplate = Pick<StoredTemplate, 'name' | 'version' | 'published'>;

/**
 * Pure. The mail that a template becomes.
 *
 * @param root what paths of faults begin with: `body`, or `input` of a mutation.
 * @throws ServiceError TEMPLATE_VARIABLES naming each that is missing or wrong.
 */
export function mailOf({ name: template, published }: UsableTemplate, reader: Reader, root: string): RenderedMail {
  const rendered = renderTemplate(published, reader);
  if ('mail' in rendered) return rendered.mail;
  const fields = rendered.faults.map(({ path, message }) => ({ path: `${root}/variables${path}`, message }));
  throw new CommunicationError('TEMPLATE_VARIABLES', { details: { template, fields } });
}
