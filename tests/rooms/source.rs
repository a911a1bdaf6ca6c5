//! The source of the library as data: its files, and what each names of the others. Items of tests
//! are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Meta, UseTree, Visibility};

/// A path from the root of the crate, without `crate`.
pub(crate) type ModulePath = Vec<String>;

/// A module that is a file.
#[derive(Default)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    /// What `use` binds, and to what.
    names: BTreeMap<String, ModulePath>,
    /// Paths that the file names, absolute as far as imports and child modules tell.
    named: BTreeSet<ModulePath>,
}

/// All modules of the crate that are files.
pub(crate) struct Source {
    pub(crate) files: BTreeMap<ModulePath, File>,
}

impl Source {
    /// Reads the modules from `src/lib.rs` on; `read` answers the text of a file, if there is one.
    pub(crate) fn read(read: &dyn Fn(&Path) -> Option<String>) -> Source {
        let mut source = Source { files: BTreeMap::new() };
        source.add(read, &[], PathBuf::from("src/lib.rs"));
        source
    }

    fn add(&mut self, read: &dyn Fn(&Path) -> Option<String>, module: &[String], path: PathBuf) {
        let text = read(&path).unwrap_or_else(|| panic!("{} is missing", path.display()));
        let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut reader = Reader {
            module: module.to_vec(),
            file: File { path, ..File::default() },
            children: Vec::new(),
            paths: Vec::new(),
        };
        reader.visit_file(&file);
        let children = reader.children.clone();
        self.files.insert(module.to_vec(), reader.finished());
        let folder = module.iter().collect::<PathBuf>();
        for name in children {
            let beside = Path::new("src").join(&folder).join(format!("{name}.rs"));
            let inside = Path::new("src").join(&folder).join(&name).join("mod.rs");
            let path = if read(&beside).is_some() { beside } else { inside };
            self.add(read, &[module, &[name]].concat(), path);
        }
    }

    /// The rooms that a file names, its own left out.
    pub(crate) fn rooms_named(&self, module: &ModulePath) -> BTreeSet<&str> {
        let named = self.files[module].named.iter().chain(self.files[module].names.values());
        named
            .map(|path| path[0].as_str())
            .filter(|&room| self.files.contains_key(&vec![room.to_owned()]))
            .filter(|&room| module.first().is_none_or(|own| own != room))
            .collect()
    }

    /// The files in which what a file names is defined, itself left out.
    pub(crate) fn files_named(&self, module: &ModulePath) -> BTreeSet<ModulePath> {
        let named = self.files[module].named.iter();
        named.filter_map(|path| self.definition(path)).filter(|found| found != module).collect()
    }

    /// The file that defines an item: imports are followed. A module alone defines nothing.
    fn definition(&self, path: &[String]) -> Option<ModulePath> {
        let mut path = path.to_vec();
        // Each step leaves one file for another; more steps than files would be a circle.
        for _ in 0..self.files.len() {
            let length = (0..path.len()).rev().find(|&n| self.files.contains_key(&path[..n]))?;
            if self.files.contains_key(&path) {
                return None;
            }
            match self.files[&path[..length]].names.get(&path[length]) {
                Some(target) => path = [target.as_slice(), &path[length + 1..]].concat(),
                None => return Some(path[..length].to_vec()),
            }
        }
        None
    }
}

/// Collects what one file names.
struct Reader {
    /// The module, inline ones included.
    module: ModulePath,
    file: File,
    /// Modules that are files below this one.
    children: Vec<String>,
    /// Paths of expressions, types and macros with the module they stand in.
    paths: Vec<(ModulePath, Vec<String>)>,
}

impl Reader {
    /// The file, once all its imports are known and its paths can be told.
    fn finished(mut self) -> File {
        for (module, path) in std::mem::take(&mut self.paths) {
            if let Some(path) = self.absolute(&module, &path) {
                self.file.named.insert(path);
            }
        }
        self.file
    }

    fn absolute(&self, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let mut at = match path[0].as_str() {
            "crate" => Vec::new(),
            "self" | "super" => module.clone(),
            name => {
                if let Some(target) = self.file.names.get(name) {
                    return Some([target.as_slice(), &path[1..]].concat());
                }
                let is_child = self.children.iter().any(|child| child == name);
                return is_child.then(|| [module.as_slice(), path].concat());
            }
        };
        let mut rest = path;
        while let Some(first) = rest.first() {
            match first.as_str() {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                _ => break,
            }
            rest = &rest[1..];
        }
        let path = [at.as_slice(), rest].concat();
        (!path.is_empty()).then_some(path)
    }

    fn import(&mut self, item: &ItemUse) {
        let mut leaves = Vec::new();
        flatten(&item.tree, &mut Vec::new(), &mut leaves);
        for (path, name) in leaves {
            let Some(path) = self.absolute(&self.module.clone(), &path) else { continue };
            // What is only passed on is not used here.
            if matches!(item.vis, Visibility::Inherited) {
                self.file.named.insert(path.clone());
            }
            if let Some(name) = name {
                self.file.names.insert(name, path);
            } else {
                self.file.named.insert(path);
            }
        }
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let colon =
            |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let mut path = vec![first.to_string()];
                    while colon(at + 1) && colon(at + 2) {
                        let Some(TokenTree::Ident(next)) = tokens.get(at + 3) else { break };
                        path.push(next.to_string());
                        at += 3;
                    }
                    self.paths.push((self.module.clone(), path));
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        match item {
            Item::Use(item) => self.import(item),
            other => visit::visit_item(self, other),
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let name = item.ident.to_string();
        if item.content.is_none() {
            return self.children.push(name);
        }
        self.module.push(name);
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.paths.push((self.module.clone(), names));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, found: &'ast syn::Macro) {
        self.tokens(found.tokens.clone());
        visit::visit_macro(self, found);
    }
}

/// Paths that an import names, each with the name it binds; a glob binds none.
fn flatten(
    tree: &UseTree,
    before: &mut Vec<String>,
    leaves: &mut Vec<(Vec<String>, Option<String>)>,
) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, leaves);
            before.pop();
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|item| flatten(item, before, leaves));
        }
        UseTree::Name(name) if name.ident == "self" => {
            leaves.push((before.clone(), before.last().cloned()));
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            leaves.push(([before.as_slice(), std::slice::from_ref(&name)].concat(), Some(name)));
        }
        UseTree::Rename(rename) => {
            let (name, new) = (rename.ident.to_string(), rename.rename.to_string());
            let path = match name.as_str() {
                "self" => before.clone(),
                _ => [before.as_slice(), &[name]].concat(),
            };
            leaves.push((path, Some(new)));
        }
        UseTree::Glob(_) => leaves.push((before.clone(), None)),
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether `#[cfg(test)]`, alone or with more, leaves the item out of the library.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let mut tokens = list.tokens.clone().into_iter();
            match tokens.next() {
                Some(TokenTree::Ident(word)) if word == "test" => true,
                Some(TokenTree::Ident(word)) if word == "all" => {
                    let Some(TokenTree::Group(all)) = tokens.next() else { return false };
                    all.stream()
                        .into_iter()
                        .any(|token| matches!(token, TokenTree::Ident(word) if word == "test"))
                }
                _ => false,
            }
        }
        _ => false,
    })
}
