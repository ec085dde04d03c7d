"""Which grammar reads a file, and which of its nodes are definitions. Grammars are loaded when the first file needs them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

PYTHON = """
(class_definition name: (_) @name) @def
(function_definition name: (_) @name) @def
(type_alias_statement left: (_) @name) @def
"""

JAVASCRIPT = """
(class_declaration name: (_) @name) @def
(function_declaration name: (_) @name) @def
(generator_function_declaration name: (_) @name) @def
(method_definition name: (_) @name) @def
(variable_declarator name: (identifier) @name
  value: [(arrow_function) (function_expression) (generator_function) (class)]) @def
(program (lexical_declaration (variable_declarator name: (identifier) @name
  value: (call_expression arguments: (arguments [(arrow_function) (function_expression)]))) @def))
(export_statement declaration: (lexical_declaration (variable_declarator name: (identifier) @name) @def))
(assignment_expression left: (member_expression property: (_) @name)
  right: [(arrow_function) (function_expression) (generator_function) (class)]) @def
(pair key: (_) @name value: [(arrow_function) (function_expression)]) @def
"""

TYPESCRIPT = (
    JAVASCRIPT
    + """
(abstract_class_declaration name: (_) @name) @def
(interface_declaration name: (_) @name) @def
(type_alias_declaration name: (_) @name) @def
(enum_declaration name: (_) @name) @def
(internal_module name: (_) @name) @def
(module name: (_) @name) @def
(function_signature name: (_) @name) @def
(assignment_expression left: (member_expression property: (_) @name) right: (as_expression (function_expression))) @def
(abstract_method_signature name: (_) @name) @def
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @def
"""
)

GO = """
(function_declaration name: (_) @name) @def
(method_declaration name: (_) @name) @def
(type_spec name: (_) @name) @def
(type_alias name: (_) @name) @def
"""

RUST = """
(function_item name: (_) @name) @def
(function_signature_item name: (_) @name) @def
(struct_item name: (_) @name) @def
(enum_item name: (_) @name) @def
(union_item name: (_) @name) @def
(trait_item name: (_) @name) @def
(impl_item type: (_) @name) @def
(type_item name: (_) @name) @def
(mod_item name: (_) @name) @def
(macro_definition name: (_) @name) @def
(macro_definition) @tokens
(macro_invocation) @tokens
"""

JAVA = """
(class_declaration name: (_) @name) @def
(interface_declaration name: (_) @name) @def
(enum_declaration name: (_) @name) @def
(record_declaration name: (_) @name) @def
(annotation_type_declaration name: (_) @name) @def
(method_declaration name: (_) @name) @def
(constructor_declaration name: (_) @name) @def
"""

C = """
(function_definition declarator: (_) @name) @def
(declaration declarator: (function_declarator) @name) @def
(declaration declarator: (pointer_declarator declarator: (function_declarator)) @name) @def
(struct_specifier name: (_) @name body: (_)) @def
(union_specifier name: (_) @name body: (_)) @def
(enum_specifier name: (_) @name body: (_)) @def
(type_definition declarator: (_) @name) @def
(translation_unit (declaration declarator: (init_declarator declarator: (_) @name value: (initializer_list))) @def)
(preproc_function_def name: (_) @name) @def
"""

CPP = (
    C
    + """
(class_specifier name: (_) @name body: (_)) @def
(namespace_definition name: (_) @name) @def
(alias_declaration name: (_) @name) @def
(concept_definition name: (_) @name) @def
(field_declaration declarator: (function_declarator) @name) @def
"""
)

RUBY = """
(class name: (_) @name) @def
(module name: (_) @name) @def
(singleton_class value: (_) @name) @def
(method name: (_) @name) @def
(singleton_method name: (_) @name) @def
"""

QUERIES = {
    "python": PYTHON,
    "javascript": JAVASCRIPT,
    "typescript": TYPESCRIPT,
    "tsx": TYPESCRIPT,
    "go": GO,
    "rust": RUST,
    "java": JAVA,
    "c": C,
    "cpp": CPP,
    "ruby": RUBY,
}

EXTENSIONS = {
    **dict.fromkeys(("py", "pyi", "pyw"), "python"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "javascript"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    "tsx": "tsx",
    "go": "go",
    "rs": "rust",
    "java": "java",
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "inl", "ipp", "tpp"), "cpp"),
    **dict.fromkeys(("rb", "rake", "gemspec", "ru"), "ruby"),
}


def language_of(path: str, data: bytes) -> str:
    """The name of the grammar for a file, or nothing. A header is C++ where it says so itself."""
    language = EXTENSIONS.get(path.rsplit(".", 1)[-1].lower(), "") if "." in path else ""
    if language == "c" and path.endswith((".h", ".H")) and any(sign in data for sign in CPP_SIGNS):
        return "cpp"
    return language


CPP_SIGNS = (b"namespace ", b"template <", b"template<", b"\nclass ", b"public:", b"constexpr ", b"std::")


@cache
def grammar(language: str) -> tuple[Parser, Query]:
    """The parser of a language and the query that finds its definitions."""
    import importlib

    import tree_sitter

    package: Any = importlib.import_module(f"tree_sitter_{'typescript' if language == 'tsx' else language}")
    pointer: object = getattr(package, f"language_{language}" if language in ("typescript", "tsx") else "language")()
    made = tree_sitter.Language(pointer)
    return tree_sitter.Parser(made), tree_sitter.Query(made, QUERIES[language])
