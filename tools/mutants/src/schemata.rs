//! A file with all of its mutants in it, each behind a condition.
//!
//! ```text
//! a + b        (match ((a), (b)) { (l, r) => match on(17, 2) { 17 => l - r, 18 => l * r, _ => l + r } })
//! a < b        the same, of references
//! a && b       (match (a) { l => if l != is(17) { b } else { l } })
//! a += b       (match (b) { r => match on(17, 2) { 17 => a -= r, 18 => a *= r, _ => a += r } })
//! !a           (match (a) { l => match on(17, 1) { 17 => l, _ => !l } })
//! { body }     { if is(17) { return 0; } body }
//! arm => x     arm if !is(17) => x
//! if guard     if (guard || is(17)) && !is(18)
//! field: a     field: if is(17) { (base).field } else { a }
//! ```
//!
//! Operands stand in it once, but for what is assigned to. Every alternative has a line of its own, with its number in
//! a comment, by which an error of the compiler is brought home to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::{Context as _, Result};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr};

use crate::list::{Mutant, Places};

/// What is written in place of what.
struct Site {
    range: Range<usize>,
    kind: Kind,
    mutants: Vec<u32>,
}

enum Kind {
    /// Left, operator, right; whether the operands are compared.
    Operator(Range<usize>, Range<usize>, Range<usize>, bool),
    /// Left, right; whether it is `&&`.
    Lazy(Range<usize>, Range<usize>, bool),
    Assign(Range<usize>, Range<usize>, Range<usize>),
    /// Operator, operand.
    Unary(Range<usize>, Range<usize>),
    Body,
    /// The pattern's end, and the guard.
    Arm(usize, Option<Range<usize>>),
    Guard,
    /// Of a structure with a base: its name, its value, the base.
    Field(Range<usize>, Range<usize>, Range<usize>),
}

/// The text of a file with its mutants, and the numbers of those that are in it.
pub fn write(text: &str, mutants: &[&Mutant]) -> Result<(String, BTreeSet<u32>)> {
    let places = Places::of(text);
    let mut spans: BTreeMap<(usize, usize), Vec<&Mutant>> = BTreeMap::new();
    for mutant in mutants {
        let span = mutant.span(&places)?;
        spans.entry((span.start, span.end)).or_default().push(mutant);
    }
    let mut finder = Finder { places: &places, spans: &spans, sites: Vec::new(), bodies: Vec::new() };
    finder.visit_file(&syn::parse_file(text).context("it does not parse")?);
    let Finder { mut sites, bodies, .. } = finder;
    for (&(start, end), found) in &spans {
        let numbers: Vec<u32> =
            found.iter().filter(|mutant| mutant.genre == "FnValue").map(|mutant| mutant.number).collect();
        let around = bodies.iter().filter(|body| body.start <= start && end <= body.end);
        if let Some(body) = around.min_by_key(|body| body.len()).filter(|_| !numbers.is_empty()) {
            sites.push(Site { range: body.clone(), kind: Kind::Body, mutants: numbers });
        }
    }
    // The outer one first.
    sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end), !site.is_outer()));
    let by_number = mutants.iter().map(|mutant| (mutant.number, *mutant)).collect();
    let page = Page { text, sites: &sites, mutants: &by_number };
    let placed = sites.iter().flat_map(|site| site.mutants.iter().copied()).collect();
    Ok((page.range(0..text.len(), 0), placed))
}

/// Whether tests alone are behind an attribute.
fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let words = match &attr.meta {
            syn::Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string(),
            _ => return false,
        };
        let words: String = words.split_whitespace().collect();
        words == "test" || words.starts_with("all(test,")
    })
}

struct Finder<'a> {
    places: &'a Places<'a>,
    spans: &'a BTreeMap<(usize, usize), Vec<&'a Mutant>>,
    sites: Vec<Site>,
    bodies: Vec<Range<usize>>,
}

impl Finder<'_> {
    fn range(&self, of: &impl Spanned) -> Option<Range<usize>> {
        self.places.span(of.span())
    }

    /// The mutants of this genre at this place.
    fn at(&self, range: &Range<usize>, genre: &str) -> Vec<u32> {
        let found = self.spans.get(&(range.start, range.end)).into_iter().flatten();
        found.filter(|mutant| mutant.genre == genre).map(|mutant| mutant.number).collect()
    }

    fn add(&mut self, range: Range<usize>, kind: Kind, mutants: Vec<u32>) {
        if !mutants.is_empty() {
            self.sites.push(Site { range, kind, mutants });
        }
    }

    fn binary(&mut self, node: &syn::ExprBinary) -> Option<()> {
        let [all, left, op, right] =
            [self.range(node)?, self.range(&node.left)?, self.range(&node.op)?, self.range(&node.right)?];
        let mutants = self.at(&op, "BinaryOperator");
        let is_let = |side: &Expr| matches!(side, Expr::Let(_));
        let kind = match node.op {
            BinOp::And(_) | BinOp::Or(_) if is_let(&node.left) || is_let(&node.right) => return None,
            BinOp::And(_) | BinOp::Or(_) => Kind::Lazy(left, right, matches!(node.op, BinOp::And(_))),
            BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) => {
                Kind::Operator(left, op, right, true)
            }
            BinOp::Add(_)
            | BinOp::Sub(_)
            | BinOp::Mul(_)
            | BinOp::Div(_)
            | BinOp::Rem(_)
            | BinOp::BitXor(_)
            | BinOp::BitAnd(_)
            | BinOp::BitOr(_)
            | BinOp::Shl(_)
            | BinOp::Shr(_) => Kind::Operator(left, op, right, false),
            _ => Kind::Assign(left, op, right),
        };
        self.add(all, kind, mutants);
        Some(())
    }

    fn unary(&mut self, node: &syn::ExprUnary) -> Option<()> {
        let (all, op, of) = (self.range(node)?, self.range(&node.op)?, self.range(&node.expr)?);
        let mutants = self.at(&op, "UnaryOperator");
        self.add(all, Kind::Unary(op, of), mutants);
        Some(())
    }

    /// `others`: whether another arm takes what this one leaves.
    fn arm(&mut self, node: &syn::Arm, others: bool) -> Option<()> {
        let all = self.range(node)?;
        let guard = match &node.guard {
            Some((_, guard)) => Some(self.range(guard)?),
            None => None,
        };
        if let Some(guard) = &guard {
            let mutants = self.at(guard, "MatchArmGuard");
            self.add(guard.clone(), Kind::Guard, mutants);
        }
        let mutants = if others { self.at(&all, "MatchArm") } else { Vec::new() };
        self.add(all, Kind::Arm(self.range(&node.pat)?.end, guard), mutants);
        Some(())
    }

    fn fields(&mut self, node: &syn::ExprStruct) -> Option<()> {
        let base = self.range(node.rest.as_ref()?)?;
        for field in &node.fields {
            let (all, name, value) =
                (self.range(field)?, self.range(&field.member)?, self.range(&field.expr)?);
            // What is deleted goes on to the comma.
            let there = self.spans.range((all.start, all.end)..(all.start.wrapping_add(1), 0));
            let there = there.flat_map(|(_, found)| found).filter(|mutant| mutant.genre == "StructField");
            let mutants = there.map(|mutant| mutant.number).collect();
            self.add(all, Kind::Field(name, value, base.clone()), mutants);
        }
        Some(())
    }

    fn body(&mut self, sig: &syn::Signature, block: &syn::Block) {
        // Another type would be another function.
        if let syn::ReturnType::Type(_, result) = &sig.output {
            if matches!(**result, syn::Type::ImplTrait(_)) {
                return;
            }
        }
        self.bodies.extend(self.places.span(block.brace_token.span.join()));
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !is_test(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        if !is_test(&node.attrs) {
            self.body(&node.sig, &node.block);
            visit::visit_item_fn(self, node);
        }
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        if !is_test(&node.attrs) {
            self.body(&node.sig, &node.block);
            visit::visit_impl_item_fn(self, node);
        }
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        node.default.iter().for_each(|block| self.body(&node.sig, block));
        visit::visit_trait_item_fn(self, node);
    }

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let _ = self.binary(node);
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        let _ = self.unary(node);
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_struct(&mut self, node: &'ast syn::ExprStruct) {
        let _ = self.fields(node);
        visit::visit_expr_struct(self, node);
    }

    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        let any = |arm: &syn::Arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none();
        let others = node.arms.iter().any(any);
        for arm in &node.arms {
            let _ = self.arm(arm, others);
        }
        visit::visit_expr_match(self, node);
    }
}

impl Site {
    /// Whether it goes around another one of the same place: a guard around its own expression.
    fn is_outer(&self) -> bool {
        matches!(self.kind, Kind::Guard | Kind::Arm(..))
    }
}

struct Page<'a> {
    text: &'a str,
    sites: &'a [Site],
    mutants: &'a BTreeMap<u32, &'a Mutant>,
}

impl Page<'_> {
    /// The text of a range with the sites in it, of those from `first` on.
    fn range(&self, range: Range<usize>, first: usize) -> String {
        let mut out = String::new();
        let mut at = range.start;
        for (number, site) in self.sites.iter().enumerate().skip(first) {
            if site.range.start >= range.end {
                break;
            }
            if site.range.start >= at && site.range.end <= range.end {
                out.push_str(self.text.get(at..site.range.start).unwrap_or_default());
                out.push_str(&self.site(number, site));
                at = site.range.end;
            }
        }
        out.push_str(self.text.get(at..range.end).unwrap_or_default());
        out
    }

    /// A site, with those within it.
    fn site(&self, number: usize, site: &Site) -> String {
        let within = |range: &Range<usize>| self.range(range.clone(), number.wrapping_add(1));
        let plain = |range: &Range<usize>| self.text.get(range.clone()).unwrap_or_default();
        let first = site.mutants.iter().min().copied().unwrap_or_default();
        let last = site.mutants.iter().max().copied().unwrap_or_default();
        let on = format!("crate::mutant::on({first}, {})", last.wrapping_sub(first).wrapping_add(1));
        let marks: String = site.mutants.iter().map(|number| format!("/*{number}*/")).collect();
        // Each alternative, then what there is.
        let choice = |text: &dyn Fn(&str) -> String, op: &str| {
            let one = |number: &u32| {
                let new = self.mutants.get(number).map_or("", |mutant| mutant.replacement.as_str());
                format!("/*{number}*/ {number} => {},\n", text(new))
            };
            let arms: String = site.mutants.iter().map(one).collect();
            format!("match {on} {{\n{arms}{marks} _ => {}\n}}", text(op))
        };
        match &site.kind {
            Kind::Operator(left, op, right, compared) => {
                let by = if *compared { "&" } else { "" };
                let of = if *compared { "*" } else { "" };
                let text = |op: &str| format!("{of}mutant_l {op} {of}mutant_r");
                let (left, right) = (within(left), within(right));
                format!(
                    "\n{marks} (match ({by}({left}), {by}({right})) {{ (mutant_l, mutant_r) => {} }})",
                    choice(&text, plain(op))
                )
            }
            Kind::Lazy(left, right, and) => {
                let sign = if *and { "!=" } else { "==" };
                let (left, right) = (within(left), within(right));
                format!(
                    "\n{marks} (match ({left}) {{ mutant_l => \
                     if mutant_l {sign} crate::mutant::is({first}) {{ {right} }} else {{ mutant_l }} }})"
                )
            }
            Kind::Assign(left, op, right) => {
                let (left, right) = (within(left), within(right));
                let text = |op: &str| format!("{left} {op} mutant_r");
                format!("\n{marks} (match ({right}) {{ mutant_r => {} }})", choice(&text, plain(op)))
            }
            Kind::Unary(op, of) => {
                let text = |op: &str| format!("{op} mutant_l");
                format!("\n{marks} (match ({}) {{ mutant_l => {} }})", within(of), choice(&text, plain(op)))
            }
            Kind::Body => {
                let one = |number: &u32| {
                    let new = self.mutants.get(number).map_or("", |mutant| mutant.replacement.as_str());
                    format!("/*{number}*/ if crate::mutant::is({number}) {{ return {new}; }}\n")
                };
                let all: String = site.mutants.iter().map(one).collect();
                let rest = within(&(site.range.start.wrapping_add(1)..site.range.end));
                format!("{{\n{all}{rest}")
            }
            Kind::Arm(pattern, guard) => {
                let not = format!("!crate::mutant::is({first})");
                let pattern_text = within(&(site.range.start..*pattern));
                match guard {
                    Some(guard) => {
                        let rest = within(&(guard.end..site.range.end));
                        format!("\n{marks} {pattern_text} if {not} && ({}){rest}", within(guard))
                    }
                    None => {
                        let rest = within(&(*pattern..site.range.end));
                        format!("\n{marks} {pattern_text} if {not} {rest}")
                    }
                }
            }
            Kind::Field(name, value, base) => {
                let (name, value) = (plain(name), within(value));
                let base = within(base);
                format!(
                    "\n{marks} {name}: if crate::mutant::is({first}) {{ ({base}).{name} }} else {{ {value} }}"
                )
            }
            Kind::Guard => {
                let inner = within(&site.range);
                let one = |text: String, number: &u32| match self
                    .mutants
                    .get(number)
                    .map(|mutant| mutant.replacement.as_str())
                {
                    Some("true") => format!("({text} || crate::mutant::is({number}))"),
                    _ => format!("({text} && !crate::mutant::is({number}))"),
                };
                format!("\n{marks} {}", site.mutants.iter().fold(format!("({inner})"), one))
            }
        }
    }
}
