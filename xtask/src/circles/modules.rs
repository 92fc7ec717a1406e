//! The modules of a crate: what each defines, imports and mentions, read from its tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::lexer::{Token, tokens};

/// Keywords that a definition begins with; its name follows.
const DEFINE: &[&str] = &["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// Of items that end with a block or with `;`. All others, but those of [`UNTIL_SEMICOLON`], may be
/// fields or arms, which end with a comma.
const WITH_BLOCK: &[&str] = &["fn", "struct", "enum", "trait", "impl", "mod", "unsafe", "async"];
const UNTIL_SEMICOLON: &[&str] = &["use", "const", "static", "type", "let"];

/// One module: a file, or a `mod x { … }` inside of one.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) parent: Option<usize>,
    /// Index into [`Crate::files`].
    pub(super) file: usize,
    pub(super) children: BTreeMap<String, usize>,
    /// Names that are defined here.
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// Paths of at least two segments in the code.
    pub(super) paths: BTreeSet<Vec<String>>,
    /// Names that stand alone in the code, where they may be those of a re-export.
    pub(super) alone: BTreeSet<String>,
}

/// One name that a `use` brings.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// Its name here; `*` when it brings all of a module.
    pub(super) name: String,
    /// Whether it is handed on (`pub use`, of any visibility).
    pub(super) is_public: bool,
}

/// All modules below one `lib.rs` or `main.rs`, without those of tests. The first one is the root.
#[derive(Debug, Default)]
pub(super) struct Crate {
    pub(super) modules: Vec<Module>,
    pub(super) files: Vec<PathBuf>,
}

impl Crate {
    /// Reads the module in `root` and all below it.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(super) fn read(root: &Path) -> Result<Crate> {
        let mut found = Crate::default();
        let directory = root.parent().unwrap_or(root).to_owned();
        let mut waiting = vec![(root.to_owned(), directory, None)];
        while let Some((file, directory, named)) = waiting.pop() {
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let tokens = tokens(&text);
            found.files.push(file);
            let module = found.add(named, found.files.len() - 1);
            let mut scan = Scan { found, tokens: &tokens, at: 0, below: Vec::new() };
            scan.module(module, &directory);
            let below = scan.below;
            found = scan.found;
            // A name without a file is one in a macro, or made by a build script.
            waiting.extend(below.into_iter().filter_map(|(parent, name, directory)| {
                let inside = directory.join(&name);
                let flat = directory.join(format!("{name}.rs"));
                let file = if flat.is_file() { flat } else { inside.join("mod.rs") };
                file.is_file().then_some((file, inside, Some((parent, name))))
            }));
        }
        Ok(found)
    }

    /// Adds a module in `file`, below another under a name.
    fn add(&mut self, named: Option<(usize, String)>, file: usize) -> usize {
        let module = self.modules.len();
        let parent = named.as_ref().map(|(parent, _)| *parent);
        self.modules.push(Module { parent, file, ..Module::default() });
        if let Some((parent, name)) = named {
            self.modules[parent].children.insert(name, module);
        }
        module
    }
}

/// Reads the tokens of one file.
struct Scan<'a> {
    found: Crate,
    tokens: &'a [Token<'a>],
    at: usize,
    /// Modules in files of their own: the module they are declared in, their names, the directory.
    below: Vec<(usize, String, PathBuf)>,
}

impl<'a> Scan<'a> {
    fn token(&self, at: usize) -> Option<Token<'a>> {
        self.tokens.get(at).copied()
    }

    fn name(&self, at: usize) -> Option<&'a str> {
        if let Some(Token::Name(name)) = self.token(at) { Some(name) } else { None }
    }

    fn is_sign(&self, at: usize, sign: u8) -> bool {
        self.token(at) == Some(Token::Sign(sign))
    }

    /// Reads a module up to its closing brace or the end of the file.
    fn module(&mut self, module: usize, directory: &Path) {
        let (mut depth, mut public_until) = (0_usize, None);
        while let Some(token) = self.token(self.at) {
            let start = self.at;
            self.at += 1;
            match token {
                Token::Sign(b'{') => depth += 1,
                Token::Sign(b'}') if depth == 0 => return,
                Token::Sign(b'}') => depth -= 1,
                Token::Sign(b'#') => self.attribute(),
                Token::Name("pub") => {
                    if self.is_sign(self.at, b'(') {
                        self.skip_group();
                    }
                    public_until = Some(self.at);
                }
                Token::Name("use") if !self.is_sign(self.at, b'<') => {
                    self.imports(module, &mut Vec::new(), public_until == Some(start));
                }
                Token::Name("mod") if self.name(self.at).is_some() => {
                    self.submodule(module, directory);
                }
                Token::Name("macro_rules") if self.is_sign(self.at, b'!') => {
                    let name = self.name(self.at + 1).unwrap_or_default();
                    self.found.modules[module].items.insert(name.to_owned());
                    self.at += 2;
                }
                Token::Name(word) if DEFINE.contains(&word) => self.definition(module, depth),
                Token::Name(_) => self.mention(module, start),
                Token::Sign(_) | Token::PathSep => {}
            }
        }
    }

    /// Skips an attribute, and what it stands before if that is for tests only.
    fn attribute(&mut self) {
        let is_inner = self.is_sign(self.at, b'!');
        self.at += usize::from(is_inner);
        if !self.is_sign(self.at, b'[') {
            return;
        }
        let start = self.at;
        self.skip_group();
        let inside = &self.tokens[start..self.at.min(self.tokens.len())];
        let has = |name| inside.contains(&Token::Name(name));
        let is_cfg = inside.get(1) == Some(&Token::Name("cfg"));
        if is_cfg && has("test") && !has("not") && !has("any") {
            if is_inner {
                self.at = self.tokens.len();
            } else {
                self.skip_item();
            }
        }
    }

    /// Skips a group whose opening bracket is the next token.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.token(self.at) {
            self.at += 1;
            match token {
                Token::Sign(b'(' | b'[' | b'{') => depth += 1,
                Token::Sign(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Skips the item, field, arm or statement that begins here.
    fn skip_item(&mut self) {
        let mut keyword = None;
        while let Some(token) = self.token(self.at) {
            match token {
                Token::Sign(b'#') if self.is_sign(self.at + 1, b'[') => {
                    self.at += 1;
                    self.skip_group();
                    continue;
                }
                Token::Name(name) => keyword = keyword.or((name != "pub").then_some(name)),
                Token::Sign(b'}' | b')' | b']') => return,
                Token::Sign(open @ (b'{' | b'(' | b'[')) => {
                    self.skip_group();
                    let ends = keyword.is_none_or(|word| !UNTIL_SEMICOLON.contains(&word));
                    if open == b'{' && ends {
                        return;
                    }
                    continue;
                }
                Token::Sign(b';') => {
                    self.at += 1;
                    return;
                }
                Token::Sign(b',') => {
                    let is_item =
                        |word| WITH_BLOCK.contains(&word) || UNTIL_SEMICOLON.contains(&word);
                    if !keyword.is_some_and(is_item) {
                        self.at += 1;
                        return;
                    }
                }
                Token::Sign(_) | Token::PathSep => {}
            }
            self.at += 1;
        }
    }

    /// Reads what follows `mod`.
    fn submodule(&mut self, module: usize, directory: &Path) {
        let name = self.name(self.at).unwrap_or_default();
        if self.is_sign(self.at + 1, b';') {
            self.below.push((module, name.to_owned(), directory.to_owned()));
            self.at += 2;
        } else if self.is_sign(self.at + 1, b'{') {
            self.at += 2;
            let file = self.found.modules[module].file;
            let inner = self.found.add(Some((module, name.to_owned())), file);
            self.module(inner, &directory.join(name));
        }
    }

    /// Reads the name after a keyword of [`DEFINE`]. Inside of blocks it is that of a method or of something local.
    fn definition(&mut self, module: usize, depth: usize) {
        if self.name(self.at) == Some("mut") {
            self.at += 1;
        }
        // `*const T` is a pointer.
        let is_pointer = self.at >= 2 && self.is_sign(self.at - 2, b'*');
        let Some(name) = self.name(self.at).filter(|_| !is_pointer) else { return };
        if DEFINE.contains(&name) || matches!(name, "unsafe" | "async" | "extern") {
            return;
        }
        self.at += 1;
        if depth == 0 {
            self.found.modules[module].items.insert(name.to_owned());
        }
    }

    /// Reads one tree of a `use`, up to its comma, brace or semicolon.
    fn imports(&mut self, module: usize, path: &mut Vec<String>, is_public: bool) {
        let before = path.len();
        let mut renamed = None;
        let mut is_group = false;
        while let Some(token) = self.token(self.at) {
            match token {
                Token::Name("as") => {
                    renamed = self.name(self.at + 1).map(str::to_owned);
                    self.at += 1;
                }
                Token::Name("self") if before > 0 && path.len() == before => {}
                Token::Name(name) => path.push(name.to_owned()),
                Token::Sign(b'*') => renamed = Some("*".to_owned()),
                Token::Sign(b'{') => {
                    is_group = true;
                    self.at += 1;
                    while !self.is_sign(self.at, b'}') && self.at < self.tokens.len() {
                        self.imports(module, path, is_public);
                        self.at += usize::from(self.is_sign(self.at, b','));
                    }
                }
                Token::Sign(b',' | b'}' | b';') => break,
                Token::Sign(_) | Token::PathSep => {}
            }
            self.at += 1;
        }
        let name = renamed.or_else(|| path.last().cloned());
        if let Some(name) = name.filter(|_| !is_group) {
            let import = Import { path: path.clone(), name, is_public };
            self.found.modules[module].imports.push(import);
        }
        path.truncate(before);
    }

    /// Reads a path or a name in the code; its first segment is the token before.
    fn mention(&mut self, module: usize, start: usize) {
        let before = start.checked_sub(1).and_then(|at| self.token(at));
        let mut path = vec![self.name(start).unwrap_or_default()];
        while self.token(self.at) == Some(Token::PathSep) {
            let Some(name) = self.name(self.at + 1) else { break };
            path.push(name);
            self.at += 2;
        }
        if matches!(before, Some(Token::PathSep | Token::Sign(b'.'))) {
            return;
        }
        let found = &mut self.found.modules[module];
        if path.len() > 1 {
            if path[0] != "Self" {
                found.paths.insert(path.into_iter().map(str::to_owned).collect());
            }
            return;
        }
        // A lower-case name alone is a variable or a field, unless something is called.
        let is_called = matches!(self.tokens.get(self.at), Some(Token::Sign(b'(' | b'!')));
        if is_called || path[0].starts_with(|c: char| c.is_ascii_uppercase()) {
            found.alone.insert(path[0].to_owned());
        }
    }
}
