/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From documents to a policy: each is read on its own, then merged by name, then what they say of each other is checked.
 * A broken document does not stop the reading of the others, so that one run reports all there is. */

#include <inttypes.h>

#include "policies/document.h"
#include "policies/schema.h"

const Field document_fields[] = {
        { .name = "version", .type = FIELD_INT, .least = POLICY_VERSION, .most = POLICY_VERSION, .flags = FIELD_REQUIRED,
          .offset = offsetof(DocumentDraft, version), .help = "of this language: 1" },
        { .name = "comment", .type = FIELD_COMMENT, .help = "for the reader of the file" },
        { .name = "classes", .type = FIELD_LIST, .least = 0, .most = CLASSES_MAX, .offset = offsetof(DocumentDraft, classes),
          .help = "service classes" },
        { .name = "rules", .type = FIELD_LIST, .least = 0, .most = RULES_MAX, .offset = offsetof(DocumentDraft, rules),
          .help = "rules that give classes to groups, first match wins" },
        { .name = "patches", .type = FIELD_MAP, .least = 0, .most = PATCHES_MAX, .offset = offsetof(DocumentDraft, patches),
          .help = "wanted states of the kernel patches by id: \"on\", \"off\" or a number from 0" },
        {}
};

/* Where a class or rule was found, to notice a name that one document uses twice and to point at it later. */
typedef struct Place {
        size_t document;
        size_t index;
} Place;

typedef struct Builder {
        const PolicyDocument *documents;
        size_t document; /* the one being read */
        Policy *policy;
        Place *class_places, *rule_places; /* beside the policy's arrays */
        size_t classes_capacity, class_places_capacity, rules_capacity, rule_places_capacity, patches_capacity;
        DiagList *list;
        bool bad;
        bool unread; /* a document could not be read: classes may be missing for that reason alone */
} Builder;

static void patch_clear(PatchWish *w) {
        free(w->id);
        free(w->state);
        *w = (PatchWish) {};
}

Policy *policy_free(Policy *p) {
        if (!p)
                return NULL;
        for (size_t i = 0; i < p->n_classes; i++)
                class_clear(&p->classes[i]);
        for (size_t i = 0; i < p->n_rules; i++)
                rule_clear(&p->rules[i]);
        for (size_t i = 0; i < p->n_patches; i++)
                patch_clear(&p->patches[i]);
        free(p->classes);
        free(p->rules);
        free(p->patches);
        free(p);
        return NULL;
}

const ServiceClass *policy_find_class(const Policy *p, const char *name) {
        for (size_t i = 0; i < p->n_classes; i++)
                if (p->classes[i].name && streq(p->classes[i].name, name))
                        return &p->classes[i];
        return NULL;
}

static FieldReader reader_of(const Builder *b) {
        return (FieldReader) { .file = b->documents[b->document].file, .list = b->list };
}

/* Reports a name that this document has used before. what is "class" or "rule". */
static void complain_twice(Builder *b, const char *pointer, const char *what, const char *name, size_t earlier) {
        FieldReader reader = reader_of(b);
        _cleanup_free_ char *at = pointer_to_key(pointer, "name");
        json_auto_t *value = json_string(name);

        field_complain(&reader, at, value, NULL, "this document has the %s already, as number %zu", what, earlier + 1);
        b->bad = true;
}

static int read_class(Builder *b, const char *pointer, json_t *o, size_t index) {
        FieldReader reader = reader_of(b);
        Policy *p = b->policy;
        ServiceClass c;
        int r;

        r = class_decode(&reader, pointer, o, &c);
        if (r == -ENOMEM)
                return r;
        b->bad |= r < 0;
        if (!c.name) {
                class_clear(&c);
                return 0;
        }
        for (size_t i = 0; i < p->n_classes; i++) {
                if (!streq(p->classes[i].name, c.name))
                        continue;
                if (b->class_places[i].document == b->document) {
                        complain_twice(b, pointer, "class", c.name, b->class_places[i].index);
                        class_clear(&c);
                        return 0;
                }
                class_clear(&p->classes[i]);
                p->classes[i] = c;
                b->class_places[i] = (Place) { b->document, index };
                return 0;
        }
        if (GROW_ARRAY(p->classes, p->n_classes, b->classes_capacity) < 0 ||
            GROW_ARRAY(b->class_places, p->n_classes, b->class_places_capacity) < 0) {
                class_clear(&c);
                return -ENOMEM;
        }
        b->class_places[p->n_classes] = (Place) { b->document, index };
        p->classes[p->n_classes++] = c;
        return 0;
}

static int read_rule(Builder *b, const char *pointer, json_t *o, size_t index) {
        FieldReader reader = reader_of(b);
        Policy *p = b->policy;
        Rule v;
        int r;

        r = rule_decode(&reader, pointer, o, &v);
        if (r == -ENOMEM)
                return r;
        b->bad |= r < 0;
        if (!v.name) {
                rule_clear(&v);
                return 0;
        }
        for (size_t i = 0; i < p->n_rules; i++) {
                if (!streq(p->rules[i].name, v.name))
                        continue;
                if (b->rule_places[i].document == b->document) {
                        complain_twice(b, pointer, "rule", v.name, b->rule_places[i].index);
                        rule_clear(&v);
                        return 0;
                }
                rule_clear(&p->rules[i]);
                p->rules[i] = v;
                b->rule_places[i] = (Place) { b->document, index };
                return 0;
        }
        if (GROW_ARRAY(p->rules, p->n_rules, b->rules_capacity) < 0 ||
            GROW_ARRAY(b->rule_places, p->n_rules, b->rule_places_capacity) < 0) {
                rule_clear(&v);
                return -ENOMEM;
        }
        b->rule_places[p->n_rules] = (Place) { b->document, index };
        p->rules[p->n_rules++] = v;
        return 0;
}

/* The state of a patch as text: "on", "off", or the digits of a number. NULL after reporting. */
static int read_patch_state(Builder *b, const char *pointer, json_t *value, char **ret) {
        FieldReader reader = reader_of(b);
        char *s;

        if (json_is_string(value) && (streq(json_string_value(value), "on") || streq(json_string_value(value), "off")))
                s = strdup(json_string_value(value));
        else if (json_is_integer(value) && json_integer_value(value) >= 0) {
                if (asprintf(&s, "%" JSON_INTEGER_FORMAT, json_integer_value(value)) < 0)
                        s = NULL;
        } else {
                field_complain(&reader, pointer, value, "\"on\", \"off\" or an integer from 0", "not a state of a patch");
                return -EINVAL;
        }
        if (!s)
                return -ENOMEM;
        *ret = s;
        return 0;
}

static int read_patch(Builder *b, const char *id, json_t *value) {
        _cleanup_free_ char *pointer = pointer_to_key("/patches", id), *state = NULL, *name = NULL;
        FieldReader reader = reader_of(b);
        Policy *p = b->policy;
        int r;

        if (!pointer)
                return -ENOMEM;
        if (!policy_name_is_valid(id)) {
                field_complain(&reader, pointer, NULL, name_check(id), "not the id of a patch");
                b->bad = true;
                return 0;
        }
        r = read_patch_state(b, pointer, value, &state);
        if (r == -EINVAL) {
                b->bad = true;
                return 0;
        }
        if (r < 0)
                return r;
        for (size_t i = 0; i < p->n_patches; i++)
                if (streq(p->patches[i].id, id)) {
                        free(p->patches[i].state);
                        p->patches[i].state = TAKE_PTR(state);
                        return 0;
                }
        name = strdup(id);
        if (!name || GROW_ARRAY(p->patches, p->n_patches, b->patches_capacity) < 0)
                return -ENOMEM;
        p->patches[p->n_patches++] = (PatchWish) { .id = TAKE_PTR(name), .state = TAKE_PTR(state) };
        return 0;
}

/* The rest of a document whose version is right. */
static int read_parts(Builder *b, const DocumentDraft *d) {
        json_t *value;
        const char *id;
        size_t i;
        int r;

        json_array_foreach(d->classes, i, value) {
                _cleanup_free_ char *pointer = pointer_to_index("/classes", i);

                r = pointer ? read_class(b, pointer, value, i) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        json_array_foreach(d->rules, i, value) {
                _cleanup_free_ char *pointer = pointer_to_index("/rules", i);

                r = pointer ? read_rule(b, pointer, value, i) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        json_object_foreach(d->patches, id, value) {
                r = read_patch(b, id, value);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_document(Builder *b) {
        const PolicyDocument *document = &b->documents[b->document];
        json_auto_t *root = NULL, *repeated = NULL;
        FieldReader reader = reader_of(b);
        size_t first = b->list->n_items;
        DocumentDraft draft = {};
        json_t *version;
        int r;

        r = document_load(document->file, document->text, document->length, &root, &repeated, b->list);
        if (r == -ENOMEM)
                return r;
        b->bad |= r < 0;
        if (!root)
                root = TAKE_PTR(repeated);
        if (!root) {
                b->unread = true;
                return 0;
        }
        version = json_object_get(root, "version");
        if (json_is_integer(version) && json_integer_value(version) != POLICY_VERSION) {
                /* Another version is another language: further words about it would be wrong. */
                field_complain(&reader, "/version", version, "1", "not a version of the policy language that this program knows");
                b->bad = b->unread = true;
                r = 0;
        } else {
                r = fields_decode(&reader, "", root, document_fields, &draft);
                b->bad |= r < 0;
                if (r != -ENOMEM)
                        r = read_parts(b, &draft);
        }
        document_add_lines(b->list, first, document->text, document->length);
        return r;
}

/* Each rule must name a class of the merged policy. */
static void check_rule_classes(Builder *b) {
        const char *names[CLASSES_MAX];
        const Policy *p = b->policy;
        size_t n = 0;

        for (size_t i = 0; i < p->n_classes && n < CLASSES_MAX; i++)
                names[n++] = p->classes[i].name;
        for (size_t i = 0; i < p->n_rules; i++) {
                const PolicyDocument *document = &b->documents[b->rule_places[i].document];
                FieldReader reader = { .file = document->file, .list = b->list };
                const Rule *rule = &p->rules[i];
                _cleanup_free_ char *pointer = NULL;
                size_t first = b->list->n_items;
                json_auto_t *value = NULL;
                const char *near;

                if (!rule->class_name || policy_find_class(p, rule->class_name))
                        continue;
                near = nearest_word(rule->class_name, names, n);
                value = json_string(rule->class_name);
                if (asprintf(&pointer, "/rules/%zu/class", b->rule_places[i].index) < 0)
                        pointer = NULL;
                if (near)
                        field_complain(&reader, pointer, value, NULL, "unknown class; did you mean \"%s\"?", near);
                else
                        field_complain(&reader, pointer, value, NULL, "unknown class");
                document_add_lines(b->list, first, document->text, document->length);
                b->bad = true;
        }
}

int policy_build(const PolicyDocument *documents, size_t n_documents, Policy **ret, DiagList *list) {
        Builder b = { .documents = documents, .list = list };
        int r = 0;

        b.policy = calloc(1, sizeof(*b.policy));
        if (!b.policy)
                return -ENOMEM;
        for (; b.document < n_documents && r == 0; b.document++)
                r = read_document(&b);
        if (r == 0 && !b.unread)
                check_rule_classes(&b);
        free(b.class_places);
        free(b.rule_places);
        if (r < 0 || b.bad) {
                policy_free(b.policy);
                return r < 0 ? r : -EINVAL;
        }
        *ret = b.policy;
        return 0;
}
