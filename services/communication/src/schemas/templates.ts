import { listQuery } from '@rollcall/platform/http/lists.ts';
import { patternInWords } from '@rollcall/platform/http/patterns.ts';
import { pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import { type Static, Type } from 'typebox';
import { categories } from '../domain/messages.ts';
import type { StoredTemplate, TemplateSummary } from '../domain/templates/catalogue.ts';
import { declaredVariables } from '../domain/templates/variables.ts';
import { owner } from './owner.ts';
import { Locale, TEMPLATE_NAME, templateVariables } from './sending.ts';

/** Name of a template, wherever one is named. */
const TemplateName = Type.String({
  ...TEMPLATE_NAME,
  description: 'Letters, digits, `.`, `_` and `-`',
});
/** Of MJML or HTML: mail programs cut off what is longer than 102 kB. */
const Markup = Type.String({ maxLength: 100_000 });

const Source = Type.Object(
  {
    subject: Type.String({ minLength: 1, maxLength: 1000, description: 'Liquid' }),
    mjml: Type.Optional(Markup),
    html: Type.Optional(Markup),
    text: Type.Optional(Type.String({ maxLength: 100_000, description: 'Liquid; made of the HTML where absent' })),
  },
  { ...strict, description: 'A mail in one language, in Liquid: of MJML, or of HTML, or of text alone' },
);

const definition = {
  locales: Type.Record(Type.String(), Source, {
    minProperties: 1,
    maxProperties: 50,
    description: 'By language tag (BCP 47), such as en-ZA',
  }),
  defaultLocale: Type.String({ minLength: 1, maxLength: 64, description: 'One of the locales' }),
  variables: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'JSON Schema 2020-12 of the variables; where absent, every variable that is named is required; `unsubscribeUrl` is reserved',
    }),
  ),
};

export const TemplateBody = Type.Object(definition, strict);

export const TemplateParams = Type.Object({ name: TemplateName });
export const OwnerQuery = Type.Object(owner, strict);
export const TemplatesQuery = Type.Object({ ...listQuery, ...owner }, strict);
// A text, because 1.5 would be converted to 1.
export const TemplateQuery = Type.Object(
  {
    version: Type.Optional(
      Type.String({
        ...patternInWords('^(?:0|[1-9][0-9]{0,8})$', 'must be a whole number with at most 9 digits'),
        description: 'The newest where absent; 0: the built-in one',
      }),
    ),
    ...owner,
  },
  strict,
);

export const PreviewBody = Type.Object(
  {
    version: Type.Optional(Type.Integer({ minimum: 0, maximum: 999_999_999 })),
    locale: Type.Optional(Locale),
    variables: Type.Optional(templateVariables),
    category: Type.Optional(Type.Enum(categories, { description: '`marketing` shows the link to unsubscribe' })),
  },
  strict,
);

const summary = {
  name: TemplateName,
  version: Type.Integer({ description: 'Counted from 1; 0: it is built in' }),
  builtIn: Type.Boolean(),
  createdAt: Type.String({ format: 'date-time' }),
  updatedAt: Type.String({ format: 'date-time' }),
};

export const TemplateRecord = Type.Object({
  ...summary,
  ...definition,
  variableNames: Type.Array(Type.String(), { description: 'What it can be given' }),
});

export const TemplatesResponse = Type.Object({
  templates: Type.Array(Type.Object(summary)),
  ...pageAnswer,
});

export const VersionsResponse = Type.Object({
  versions: Type.Array(Type.Object({ version: summary.version, createdAt: summary.createdAt })),
});

export const PreviewResponse = Type.Object({
  name: TemplateName,
  version: Type.Integer(),
  locale: Type.String({ description: 'That was taken' }),
  subject: Type.String(),
  html: Type.Optional(Type.String()),
  text: Type.String(),
});

export function summaryRecord({ name, version, createdAt, updatedAt }: TemplateSummary) {
  return {
    name,
    version,
    builtIn: version === 0,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

export function templateRecord(template: StoredTemplate): Static<typeof TemplateRecord> {
  const { locales, defaultLocale, variables } = template.definition;
  return {
    ...summaryRecord(template),
    locales: { ...locales },
    defaultLocale,
    ...(variables !== undefined && { variables }),
    variableNames: [...declaredVariables(template.published.variables)],
  };
}
