// SPDX-License-Identifier: GPL-2.0

//! Walks a tree as C walks the text, over an event with a few fields, and returns the reported
//! errors.

use kernel::prelude::EINVAL;
use rhist::trigger::*;

/// Type of a field, as far as checks depend on it.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Number,
    String,
    Stack,
}

/// The event: name, class and bytes in a key of each field.
const FIELDS: &[(&str, Class, usize)] = &[
    ("pid", Class::Number, 8),
    ("prio", Class::Number, 8),
    ("lat", Class::Number, 8),
    ("id", Class::Number, 8),
    ("name", Class::String, 16),
    ("stack", Class::Stack, 256),
    ("common_pid", Class::Number, 8),
    ("common_type", Class::Number, 8),
    // Fields of every event.
    ("common_timestamp", Class::Number, 8),
    ("common_cpu", Class::Number, 8),
    ("common_comm", Class::String, 256),
    ("common_stacktrace", Class::Stack, 248),
    ("hitcount", Class::Number, 8),
];

/// System and name of the event.
const OWN_EVENT: (&[u8], &[u8]) = (b"sched", b"sched_switch");

/// The only event that `onmatch()` finds.
const OTHER_EVENT: (&[u8], &[u8]) = (b"sched", b"sched_waking");

/// Properties of a resolved expression.
struct Node {
    class: Class,
    size: usize,
    modifier: Option<ModifierKind>,
    usecs: bool,
    /// By `.log2` or `.buckets`.
    rounded: bool,
    constant: Option<u64>,
    /// Name for `sort=`.
    name: Vec<u8>,
    /// Text as an operand.
    operand: Vec<u8>,
}

/// Reports on the parameters of a `hist` command: the entries for the error log, in order, and the
/// result. The last error counts for the write; `Ok` means that C would go on to create the map.
pub(crate) fn walk(params: &[u8]) -> (Vec<Error>, Result<Trigger, Error>) {
    let mut log = Vec::new();
    let result = Trigger::parse(params).and_then(|trigger| {
        Walk {
            trigger: &trigger,
            log: &mut log,
        }
        .all()?;
        Ok(trigger)
    });
    if let Err(error) = result {
        if error.text.is_some() {
            log.push(error);
        }
    }
    (log, result)
}

/// Returns whether a trigger uses an extension, which C refuses.
#[allow(dead_code)]
pub(crate) fn is_beyond_c(trigger: &Trigger) -> bool {
    fn expr(it: &Expr) -> bool {
        match it {
            Expr::Parens { .. } => true,
            Expr::Field(field) => field.modifier.is_some_and(|modifier| {
                modifier.kind.is_statistic()
                    || modifier.kind.is_content()
                    || matches!(modifier.kind, ModifierKind::Exponential(_))
            }),
            Expr::Negation { operand, .. } => expr(operand),
            Expr::Binary { left, right, .. } => expr(left) || expr(right),
            _ => false,
        }
    }
    let clauses = &trigger.clauses;
    trigger.clauses.on.text.is_some()
        || clauses.quantiles.is_some()
        || clauses.unit.is_some()
        || clauses.buckets.is_some()
        || clauses.limit.is_some()
        || clauses.expire.is_some()
        || clauses.full.is_some()
        || trigger.size.is_some_and(|size| size.bits_max.is_some())
        || trigger.keys.items().len() > 3
        || trigger.vals.items().len() > 2
        || trigger.vals.text.is_some_and(|text| {
            let commas = trigger.bytes(text).iter().filter(|&&byte| byte == b',');
            commas.count() > 2
        })
        || trigger.sort.items().iter().any(|key| key.number.is_some())
        || trigger.keys.items().iter().any(expr)
        || trigger.vals.items().iter().any(expr)
        || trigger
            .vars
            .items()
            .iter()
            .any(|variable| expr(&variable.expr))
}

struct Walk<'a> {
    trigger: &'a Trigger,
    log: &'a mut Vec<Error>,
}

impl Walk<'_> {
    fn all(&mut self) -> Result<(), Error> {
        let trigger = self.trigger;
        for action in trigger.actions.iter() {
            let action = action?;
            if let ActionHandler::OnMatch { system, event } = action.handler {
                if (trigger.bytes(system), trigger.bytes(event)) != OTHER_EVENT {
                    return Err(trigger.error(ErrorText::InvalidSubsysEvent, event));
                }
            }
            action.act.as_ref().map_err(|&error| error)?;
        }

        let mut sortable = Vec::new();
        for val in trigger.vals.iter() {
            let val = val?;
            let node = self.expr(val, Place::Value)?;
            let refused = match node.modifier {
                Some(
                    ModifierKind::Buckets(_)
                    | ModifierKind::Log2
                    | ModifierKind::Sym
                    | ModifierKind::SymOffset
                    | ModifierKind::Syscall
                    | ModifierKind::Stacktrace,
                ) => true,
                _ => node.class == Class::Stack,
            };
            if refused {
                return Err(trigger.error(ErrorText::BadFieldModifier, val.remnant()));
            }
            sortable.push(node.name);
        }

        let mut names = Vec::new();
        for var in trigger.vars.iter() {
            let var = var?;
            let name = trigger.bytes(var.name);
            if names.contains(&name) {
                return Err(trigger.error(ErrorText::DuplicateVar, var.name));
            }
            names.push(name);
            let node = self.expr(&var.expr, Place::Variable)?;
            if let Some(ModifierKind::Buckets(_) | ModifierKind::Log2) = node.modifier {
                return Err(trigger.error(ErrorText::BadFieldModifier, var.expr.remnant()));
            }
        }

        let mut size = 0;
        for key in trigger.keys.iter() {
            let node = self.expr(key?, Place::Key)?;
            size += node.size.next_multiple_of(8);
            if size > 504 {
                return Err(trigger.own_error(HintText::KeysTooLong, key?.text()));
            }
            sortable.push(node.name);
        }

        for key in trigger.sort.iter() {
            let key = key?;
            let name = trigger.bytes(key.name);
            if name != b"hitcount" && !sortable.iter().any(|sortable| sortable == name) {
                return Err(trigger.error(ErrorText::InvalidSortField, key.name));
            }
            key.order?;
        }
        Ok(())
    }

    fn expr(&mut self, expr: &Expr, place: Place) -> Result<Node, Error> {
        let trigger = self.trigger;
        match expr {
            Expr::Bad { error, .. } => Err(*error),
            Expr::Parens { operand, .. } => self.expr(operand, Place::Operand),
            Expr::Literal { value, .. } => Ok(Node {
                class: Class::Number,
                size: 8,
                modifier: None,
                usecs: false,
                rounded: false,
                constant: Some(*value),
                name: Vec::new(),
                operand: value.to_string().into_bytes(),
            }),
            Expr::Stacktrace { .. } => Ok(Node {
                class: Class::Stack,
                size: 248,
                modifier: None,
                usecs: false,
                rounded: false,
                constant: None,
                name: b"common_stacktrace".to_vec(),
                operand: Vec::new(),
            }),
            Expr::Field(field) => self.field(*field),
            Expr::Reference(reference) => {
                let name = trigger.bytes(reference.name);
                let own = reference
                    .qualifier
                    .is_none_or(|Qualifier { system, event }| {
                        (trigger.bytes(system), trigger.bytes(event)) == OWN_EVENT
                    });
                if let Some(text) = own.then(|| trigger.substitute(name)).flatten() {
                    return self.field(trigger.field(text, place)?);
                }
                // Other triggers do not exist here.
                let unknown = trigger.error(ErrorText::VarNotFound, reference.name);
                self.log.push(unknown);
                self.field(trigger.field(reference.atom, place)?)
            }
            Expr::Negation { operand, .. } => {
                let node = self.operand(operand)?;
                if node.rounded {
                    // C fails to print it.
                    return Err(Error::own(HintText::Other, 0).with(EINVAL));
                }
                Ok(Node {
                    class: Class::Number,
                    modifier: None,
                    rounded: false,
                    constant: None,
                    name: [b"-(", &node.operand[..], b")"].concat(),
                    operand: [b"-(", &node.operand[..], b")"].concat(),
                    ..node
                })
            }
            Expr::Binary {
                operator,
                left,
                right,
                ..
            } => {
                let a = self.operand(left)?;
                let b = self.operand(right)?;
                if a.usecs != b.usecs {
                    return Err(Error::new(ErrorText::TimestampMismatch, 0));
                }
                if (*operator, b.constant) == (Operator::Over, Some(0)) {
                    return Err(trigger.error(ErrorText::DivisionByZero, right.remnant()));
                }
                let constant = a.constant.zip(b.constant).map(|(a, b)| match operator {
                    Operator::Plus => a.wrapping_add(b),
                    Operator::Minus => a.wrapping_sub(b),
                    Operator::Times => a.wrapping_mul(b),
                    Operator::Over => a / b,
                });
                let sign = match operator {
                    Operator::Plus => b"+",
                    Operator::Minus => b"-",
                    Operator::Times => b"*",
                    Operator::Over => b"/",
                };
                let (name, operand) = match constant {
                    Some(constant) => (Vec::new(), constant.to_string().into_bytes()),
                    None => {
                        let text = [&a.operand[..], sign, &b.operand[..]].concat();
                        (text.clone(), text)
                    }
                };
                Ok(Node {
                    class: Class::Number,
                    modifier: None,
                    rounded: false,
                    constant,
                    name,
                    operand,
                    ..a
                })
            }
        }
    }

    fn operand(&mut self, expr: &Expr) -> Result<Node, Error> {
        let node = self.expr(expr, Place::Operand)?;
        match node.class {
            Class::String => Err(self
                .trigger
                .error(ErrorText::InvalidStrOperand, expr.remnant())),
            _ => Ok(node),
        }
    }

    fn field(&mut self, field: FieldRef) -> Result<Node, Error> {
        let trigger = self.trigger;
        let name = trigger.bytes(field.name);
        let Some(&(_, class, size)) = FIELDS.iter().find(|(known, ..)| known.as_bytes() == name)
        else {
            return Err(trigger.no_field(field.name));
        };
        let modifier = field.modifier.map(|modifier| modifier.kind);
        let mut operand = name.to_vec();
        if let Some(modifier) = modifier {
            operand.push(b'.');
            operand.extend(modifier.word().as_bytes());
            if let ModifierKind::Buckets(width) = modifier {
                operand.extend(format!("={width}").as_bytes());
            }
        }
        let stack = modifier == Some(ModifierKind::Stacktrace);
        if stack && name != b"stack" {
            return Err(trigger.error(ErrorText::BadFieldModifier, field.atom));
        }
        let rounded = matches!(
            modifier,
            Some(ModifierKind::Buckets(_) | ModifierKind::Log2)
        ) && name != b"hitcount"
            && name != b"common_stacktrace";
        Ok(Node {
            // The address of a string is rounded, as a number.
            class: if rounded && class == Class::String {
                Class::Number
            } else {
                class
            },
            size: if stack { 248 } else { size },
            modifier,
            usecs: modifier == Some(ModifierKind::Usecs),
            rounded,
            constant: None,
            name: name.to_vec(),
            operand,
        })
    }
}
